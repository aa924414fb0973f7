/* Search in search-index.js, which docs/site/finding.py writes. No server is needed. */
"use strict";

const GREEK = { ε: "epsilon", δ: "delta", ρ: "rho", σ: "sigma", μ: "mu", α: "alpha" };

const EMPTY = new Set("a an and are can do does for how i in is it my of on or the to what which with".split(" "));

/* A word as the index has it: small letters, no accent, no hyphen, no s of many, one spelling. */
function joined(word) {
  const letters = [...word.toLowerCase()].map((c) => GREEK[c] ?? c).join("")
    .normalize("NFKD").replace(/[^\p{L}\p{N}]/gu, "")
    .replaceAll("iz", "is").replaceAll("our", "or");
  return letters.length > 3 && /[^s]s$/.test(letters) ? letters.slice(0, -1) : letters;
}

/* Where a word stands, as place -> weight: as it is, and begun by it at a third. */
function places(word, index) {
  const found = new Map();
  for (const [other, pairs] of index.words) {
    if (other !== word && !(word.length > 2 && other.startsWith(word))) continue;
    for (let i = 0; i < pairs.length; i += 2) {
      const weight = other === word ? pairs[i + 1] : pairs[i + 1] / 3;
      found.set(pairs[i], Math.max(found.get(pairs[i]) ?? 0, weight));
    }
  }
  return found;
}

/* The better of two ways to read the same words. */
function either(one, other) {
  const found = new Map(one);
  for (const [place, weight] of other) found.set(place, Math.max(found.get(place) ?? 0, weight));
  return found;
}

/* What stands in both, with the sum of the weights. */
function both(one, other) {
  const found = new Map();
  for (const [place, weight] of one) {
    if (other.has(place)) found.set(place, weight + other.get(place));
  }
  return found;
}

/* A word with a hyphen is one word, or else its parts. */
function read(word, index) {
  const whole = places(joined(word), index);
  const parts = word.split(/[-_.]/).filter((part) => joined(part));
  if (whole.size || parts.length < 2) return whole;
  return parts.map((part) => places(joined(part), index)).reduce(both);
}

/* Entries with all of the words, the best first; if there are none, with some. */
function search(text, index) {
  const written = text.split(/\s+/).filter((word) => joined(word));
  const telling = written.filter((word) => !EMPTY.has(word.toLowerCase()));
  const words = telling.length ? telling : written;
  if (!words.length) return [];
  /* best[i] reads the first i words; two neighbours may be one word, as in "k anonymity". */
  const best = [null, read(words[0], index)];
  for (let i = 2; i <= words.length; i++) {
    best[i] = both(best[i - 1], read(words[i - 1], index));
    const pair = places(joined(words[i - 2] + words[i - 1]), index);
    best[i] = either(best[i], best[i - 2] ? both(best[i - 2], pair) : pair);
  }
  let found = best[words.length];
  if (!found.size) {
    /* Nothing has all of the words: what has most of them. */
    for (const word of words) {
      for (const [place, weight] of read(word, index)) {
        found.set(place, (found.get(place) ?? 0) + weight + 1000);
      }
    }
  }
  return [...found].sort((a, b) => b[1] - a[1] || a[0] - b[0])
    .map(([place]) => index.entries[place]);
}

function show(text) {
  const found = search(text, INDEX);
  const list = document.getElementById("search-found");
  const shown = found.slice(0, 25).map(([address, title, section, summary]) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const about = document.createElement("p");
    const where = document.createElement("span");
    link.href = address;
    link.textContent = title;
    where.textContent = section;
    about.textContent = summary;
    item.append(link, where, about);
    return item;
  });
  list.replaceChildren(...shown);
  const number = found.length === 1 ? "1 result" : `${found.length} results`;
  const some = found.length > shown.length ? `, the best ${shown.length} of them` : "";
  document.getElementById("search-said").textContent = text.trim() ? number + some : "";
}

if (typeof document !== "undefined") {
  const field = document.getElementById("search-words");
  field.value = new URLSearchParams(location.search).get("q") ?? "";
  field.addEventListener("input", () => show(field.value));
  document.getElementById("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    show(field.value);
  });
  show(field.value);
  field.focus();
}
