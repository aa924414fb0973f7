/**
 * Local reports from a browser: one module, no dependencies.
 *
 * A device is told a channel as a JSON text and its hash. It turns a value into a record, noisy by
 * the channel's law, and sends that alone. Coins come from crypto.getRandomValues; what they are
 * compared with are whole numbers of 2**-64ths, computed with integers; no float decides anything.
 *
 *   const channel = await loadChannel(text, hash);
 *   const record = channel.report("flu");        // a Uint8Array, ready to send
 *   const file = channel.file(records);          // header and records, for a collector to read
 *
 *   const record = await channel.remember("flu", "anna", memory);   // again and again: a Memory
 *
 * Channels: grr, sdgrr, urr, sue, oue, blh, olh, flh, hadamard, subset, rappor, bloom-rappor,
 * loloha; and for numbers duchi, pm, hybrid, laplace, sw, sdpm.
 * The law of each, the bytes and the hash are told in docs/local/wire.md.
 */

const ONE = 1n << 64n;

// ---- Random words and coins -------------------------------------------------------------------

const pool = new Uint32Array(4096);
let used = pool.length;

/** A uniform number of 32 bits. */
function word() {
  if (used === pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  const found = pool[used];
  pool[used++] = 0;
  return found;
}

/** A threshold t of 2**64 as two numbers of 32 bits. */
function halves(t) {
  if (t < 0n || t >= ONE) throw new RangeError("a threshold must be from 0 to 2**64 - 1");
  return [Number(t >> 32n), Number(t & 0xffffffffn)];
}

/** 1 with probability t/2**64, else 0. */
function coin([high, low]) {
  const a = word();
  const b = word();
  return Number(a < high) | (Number(a === high) & Number(b < low));
}

/** A uniform whole number below n, from 1 to 2**32. */
export function below(n) {
  if (n === 1) return 0;
  if (n > 2 ** 32) throw new RangeError("a number must be below 2**32");
  const mask = 0xffffffff >>> Math.clz32(n - 1);
  for (;;) {
    const found = (word() & mask) >>> 0;
    if (found < n) return found;
  }
}

/** A uniform whole number below n, of any size. */
function belowWhole(n) {
  if (n <= 1n << 32n) return BigInt(below(Number(n)));
  const bits = BigInt((n - 1n).toString(2).length);
  for (;;) {
    let found = 0n;
    for (let have = 0n; have < bits; have += 32n) found = (found << 32n) | BigInt(word());
    found &= (1n << bits) - 1n;
    if (found < n) return found;
  }
}

/** 1 with probability a/b, exactly, else 0. */
function toss(a, b) {
  return Number(belowWhole(b) < a);
}

/** a where bit is 1, b where it is 0, without a branch; a and b below 2**32. */
function choose(bit, a, b) {
  const mask = -bit;
  return ((a & mask) | (b & ~mask)) >>> 0;
}

// ---- Exact thresholds -------------------------------------------------------------------------

const SCALE = 384n;

/** A lower bound of e**(a/b) times 2**384, by its series; the bound is off by less than 2**-300. */
function expLower([a, b]) {
  let term = 1n << SCALE;
  let sum = 0n;
  for (let n = 1n; term > 0n; n++) {
    sum += term;
    term = (term * a) / (b * n);
  }
  return sum;
}

/** The largest t with t/2**64 at most (u·E + v)/(w·E + x), E = e**epsilon, all whole numbers. */
function threshold(E, [u, v], [w, x]) {
  const [a, b, c, d] = [u, v, w, x].map(BigInt);
  return ((a * E + (b << SCALE)) << 64n) / (c * E + (d << SCALE));
}

/** An epsilon as two whole numbers: "1", "1/2". */
function fraction(text) {
  const found = /^([0-9]+)(?:\/([0-9]+))?$/.exec(text);
  if (!found) throw new TypeError("epsilon must be a fraction of whole numbers");
  const [a, b] = [BigInt(found[1]), BigInt(found[2] ?? "1")];
  if (a <= 0n || b <= 0n || a > 40n * b) throw new RangeError("epsilon must be in (0, 40]");
  return [a, b];
}

// ---- The hash ---------------------------------------------------------------------------------

const GOLD = 0x9e3779b9;

/** Mix 32 bits: a bijection. */
export function mix32(x) {
  x = Math.imul(x ^ (x >>> 16), 0x5e2fa045);
  x = Math.imul(x ^ (x >>> 15), 0xb629f0af);
  x = Math.imul(x ^ (x >>> 16), 0x10f172a1);
  return (x ^ (x >>> 15)) >>> 0;
}

/** The cell of a seed's table: 16 bits. */
export function cell(seed, index) {
  return mix32((mix32((seed + GOLD) | 0) + Math.imul(index, GOLD)) | 0) >>> 16;
}

/** The hash of a code under a seed: 16 bits. */
export function wordOf(seed, code) {
  return (cell(seed, code & 255) + cell(seed, 256 + (code >>> 8))) & 0xffff;
}

/** The bucket of a 16-bit hash, of g at most 4,096. */
export function bucket(hash, g) {
  return (hash * g) >>> 16;
}

/** Hash bytes to 64 bits, as two numbers [high, low]; so is the seed given. */
export function hash64(bytes, [seedHigh, seedLow]) {
  let a = mix32((seedLow + GOLD) | 0);
  let b = mix32(((seedHigh ^ a) + GOLD) | 0);
  for (let i = 0; i < bytes.length; i += 4) {
    const at = (j) => (i + j < bytes.length ? bytes[i + j] : 0);
    const w = at(0) | (at(1) << 8) | (at(2) << 16) | (at(3) << 24);
    a = mix32(a ^ w);
    b = mix32((b + a) | 0);
  }
  a = mix32(a ^ bytes.length);
  b = mix32((b + a) | 0);
  a = mix32((a + b) | 0);
  return [a, b];
}

/** Hash a 64-bit digest [high, low] once more, by a seed. */
export function again([high, low], seed) {
  return mix32((mix32(low ^ mix32((seed + GOLD) | 0)) + high) | 0);
}

/** The bytes of a text or integer that is hashed as such. */
export function textBytes(value) {
  return new TextEncoder().encode(typeof value === "string" ? "s" + value : "i" + Number(value));
}

/** 1 where x has an odd number of bits set. */
function parity(x) {
  x ^= x >>> 16;
  x ^= x >>> 8;
  x ^= x >>> 4;
  x ^= x >>> 2;
  return (x ^ (x >>> 1)) & 1;
}

// ---- Channels ---------------------------------------------------------------------------------

/**
 * Read a channel and check that it is the one agreed on.
 *
 * @param {string} text  the channel's canonical JSON
 * @param {string} hash  SHA-256 of it, 64 hexadecimal digits, from a source that the device trusts
 */
export async function loadChannel(text, hash) {
  const bytes = new TextEncoder().encode(text);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const found = Array.from(digest, (b) => b.toString(16).padStart(2, "0")).join("");
  if (found !== hash) throw new Error("the channel's hash is not the one agreed on");
  const described = JSON.parse(text);
  const make = KINDS[described?.channel];
  if (!make) throw new Error("this client does not know the channel");
  if (described.version !== 1) throw new Error("the channel must be of version 1");
  return new Channel({ ...described, hash }, bytes, digest, make);
}

/** A channel on the device. */
class Channel {
  #draw;
  #places;
  #other;
  #values;
  #interval;
  #remember;
  #open;

  constructor(described, text, digest, make) {
    this.kind = described.channel;
    this.text = text;
    this.digest = digest;
    this.#interval = described.interval ? new Interval(described.interval) : null;
    const domain = described.domain ?? (this.#interval && { size: this.#interval.steps + 1 });
    if (!domain) throw new TypeError("a channel must have a domain or an interval");
    const values = domain.values;
    this.size = values ? values.length : domain.size;
    if (!Number.isSafeInteger(this.size) || this.size < 2 || this.size > 1 << 24) {
      throw new RangeError("a domain must have from 2 to 2**24 values");
    }
    if (values) {
      this.#places = new Map(values.map((value, i) => [key(value), i]));
      if (this.#places.size !== values.length) throw new Error("a domain must not repeat a value");
    }
    this.#other = "other" in domain ? this.#place(domain.other) : -1;
    const made = make(described, this.size, (value) => this.code(value));
    this.recordBytes = made.bytes;
    this.thresholds = made.thresholds;
    this.#draw = made.draw;
    this.#values = values;
    this.#remember = made.remember;
    // An open channel reports any value, listed or not.
    this.#open = Boolean(made.open);
    if (made.apart) this.#interval.apart = made.apart;
  }

  /** The value of a code, and of every code. */
  value(code) {
    return this.#values ? this.#values[code] : code;
  }

  #place(value) {
    if (this.#places) return this.#places.get(key(value)) ?? -1;
    const code = Number(value);
    return key(value)[0] === "i" && code >= 0 && code < this.size ? code : -1;
  }

  /**
   * The code of a value. An unknown one throws, unless the domain declares another for it. Of a
   * channel for numbers, the point that the number is rounded to, at random.
   */
  code(value) {
    if (this.#interval) return this.#interval.round(value);
    const found = this.#place(value);
    const code = found < 0 ? this.#other : found;
    if (code < 0) throw new RangeError("the value is not in the channel's domain");
    return code;
  }

  /** What is randomised: the value's code; of an open channel its bytes. */
  #told(value) {
    if (!this.#open) return this.code(value);
    key(value);
    return textBytes(value);
  }

  /** The record of one value: its report, noisy. */
  report(value) {
    const out = new Uint8Array(this.recordBytes);
    this.#draw(this.#told(value), out);
    return out;
  }

  /**
   * The record of one value by what the device remembers: the same person and value always have the
   * same permanent coins, in every version of one question.
   */
  async remember(value, user, memory) {
    if (!this.#remember) throw new Error("reports of this channel are not remembered");
    const out = new Uint8Array(this.recordBytes);
    await this.#remember(this.#told(value), out, user, memory, this);
    return out;
  }

  /** A file of records, as a collector reads it. */
  file(records) {
    const head = new DataView(new ArrayBuffer(24));
    new Uint8Array(head.buffer).set(new TextEncoder().encode("DITHERLR"));
    head.setUint16(8, 1, true);
    head.setUint16(10, this.recordBytes, true);
    head.setUint32(12, this.text.length, true);
    head.setBigUint64(16, BigInt(records.length), true);
    const start = 24 + this.text.length + 32;
    const out = new Uint8Array(start + records.length * this.recordBytes);
    out.set(new Uint8Array(head.buffer));
    out.set(this.text, 24);
    out.set(this.digest, 24 + this.text.length);
    records.forEach((record, i) => out.set(record, start + i * this.recordBytes));
    return out;
  }
}

/** Texts apart from integers; true and false are 1 and 0. */
function key(value) {
  if (typeof value === "string") return "s" + value;
  if (typeof value === "boolean") return "i" + Number(value);
  if (Number.isSafeInteger(value)) return "i" + value;
  throw new TypeError("a value must be a text, a boolean or an integer below 2**53");
}

/** A number in the bytes of `out` from `at` to before `end`, low bytes first. */
function put(out, number, at = 0, end = out.length) {
  for (let i = at; i < end; i++) {
    out[i] = number & 255;
    number = Math.floor(number / 256);
  }
}

/** How many bytes hold every number below n. */
function bytesFor(n) {
  return Math.max(1, Math.ceil((32 - Math.clz32(n - 1)) / 8));
}

/** Another code than x, uniform. */
function another(x, k) {
  const moved = x + 1 + below(k - 1);
  return moved - k * Number(moved >= k);
}

/** A channel whose report is one number below `outputs`. */
function scalar(outputs, thresholds, draw) {
  return { bytes: bytesFor(outputs), thresholds, draw: (x, out) => put(out, draw(x)) };
}

function grr(described, k) {
  const t = threshold(expLower(fraction(described.epsilon)), [1, 0], [1, k - 1]);
  const kept = halves(t);
  return scalar(k, [t], (x) => {
    const moved = another(x, k);
    return choose(coin(kept), x, moved);
  });
}

/** Which codes are high, and their list. */
function grades(described, k, code) {
  const high = new Uint8Array(k);
  for (const value of described.high) high[code(value)] = 1;
  const highs = Array.from(high.keys()).filter((x) => high[x]);
  return [high, highs];
}

function sdgrr(described, k, code) {
  const [high, highs] = grades(described, k, code);
  const E = expLower(fraction(described.epsilon));
  const m = k - highs.length;
  const ts = [threshold(E, [1, 0], [1, k - 1]), threshold(E, [1, m - 1], [1, k - 1])];
  const [keptHigh, keptLow] = ts.map(halves);
  return scalar(k, ts, (x) => {
    // Everyone draws all of it, so that the time taken says nothing of the value.
    const moved = choose(high[x], another(x, k), highs[below(highs.length)]);
    return choose(choose(high[x], coin(keptHigh), coin(keptLow)), x, moved);
  });
}

function urr(described, k, code) {
  const [high, highs] = grades(described, k, code);
  const E = expLower(fraction(described.epsilon));
  const s = highs.length;
  const ts = [threshold(E, [1, 0], [1, s - 1]), threshold(E, [1, -1], [1, s - 1])];
  // With one sensitive value e/(s + e - 1) is 1: it is always kept.
  const always = ts[0] >= ONE;
  const [keptHigh, keptLow] = [always ? [0, 0] : halves(ts[0]), halves(ts[1])];
  const place = new Uint32Array(k);
  highs.forEach((x, i) => (place[x] = i));
  return scalar(k, ts, (x) => {
    const next = highs[(place[x] + 1 + below(Math.max(1, s - 1))) % s];
    const moved = choose(high[x], next, highs[below(s)]);
    const stays = coin(keptHigh) | Number(always);
    return choose(choose(high[x], stays, coin(keptLow)), x, moved);
  });
}

/** Independent bits; the holder's own is drawn apart. */
function unary(k, own, others) {
  const [mine, rest] = [own, others].map(halves);
  return {
    bytes: Math.ceil(k / 8),
    thresholds: [own, others],
    draw: (x, out) => {
      for (let j = 0; j < k; j++) {
        const bit = choose(Number(j === x), coin(mine), coin(rest));
        out[j >> 3] |= bit << (7 - (j & 7));
      }
    },
  };
}

function sue(described, k) {
  const [a, b] = fraction(described.epsilon);
  const t = threshold(expLower([a, 2n * b]), [1, 0], [1, 1]);
  return unary(k, t, ONE - t);
}

function oue(described, k) {
  const t = threshold(expLower(fraction(described.epsilon)), [1, 0], [1, 1]);
  return unary(k, ONE / 2n, ONE - t);
}

/** Randomised response of buckets: the threshold, and how to draw. */
function buckets(described, g) {
  if (!(g >= 2 && g <= 4096)) throw new RangeError("buckets must be from 2 to 4096");
  const t = threshold(expLower(fraction(described.epsilon)), [1, 0], [1, g - 1]);
  const kept = halves(t);
  return [t, (right) => {
    const moved = another(right, g);
    return choose(coin(kept), right, moved);
  }];
}

function olh(described) {
  const g = described.channel === "blh" ? 2 : described.buckets;
  const [t, answer] = buckets(described, g);
  const bytes = g <= 256 ? 5 : 6;
  const draw = (x, out) => {
    const seed = word();
    put(out, seed, 0, 4);
    put(out, answer(bucket(wordOf(seed, x), g)), 4);
  };
  return { bytes, thresholds: [t], draw };
}

function flh(described) {
  const { seeds, buckets: g } = described;
  const [t, answer] = buckets(described, g);
  return scalar(seeds * g, [t], (x) => {
    const seed = below(seeds);
    return seed * g + answer(bucket(wordOf(seed, x), g));
  });
}

function hadamard(described, k) {
  const B = described.blocks;
  const width = 2 ** (32 - Math.clz32(Math.ceil(k / B)));
  const total = B * width;
  const half = width / 2;
  const E = expLower(fraction(described.epsilon));
  const t = threshold(E, [half, 0], [half, total - half]);
  const kept = halves(t);
  return scalar(total, [t], (x) => {
    const [block, column] = [x % B, 1 + Math.floor(x / B)];
    const lowest = column & -column;
    const start = below(width);
    const odd = parity(start & column);
    const inside = block * width + (start ^ (lowest * odd));
    const wrong = block * width + (start ^ (lowest * (1 - odd)));
    // Of the K - b/2 others, b/2 are in the own block and the rest in the next ones.
    const u = below(total - half);
    const rest = Math.max(0, u - half);
    const away = (rest % width) + width * ((block + 1 + Math.floor(rest / width)) % B);
    return choose(coin(kept), inside, choose(Number(u < half), wrong, away));
  });
}

function subset(described, k) {
  const w = described.size;
  if (!(w >= 1 && w < k)) throw new RangeError("a set's size must be from 1 to k - 1");
  const t = threshold(expLower(fraction(described.epsilon)), [w, 0], [w, k - w]);
  const kept = halves(t);
  const draw = (x, out) => {
    const bits = new Uint8Array(k);
    const held = coin(kept);
    bits[x] = held;
    for (let last = k - 1 - w; last < k - 1; last++) {
      // Others are counted from the value on, which keeps them apart from it.
      const taken = (x + 1 + below(last + 1)) % k;
      const final = (x + 1 + last) % k;
      const chosen = choose(bits[taken], final, taken);
      // Who holds the value needs one member less, and so leaves out the first round.
      bits[chosen] |= last === k - 1 - w ? 1 - held : 1;
    }
    for (let j = 0; j < k; j++) out[j >> 3] |= bits[j] << (7 - (j & 7));
  };
  return { bytes: Math.ceil(k / 8), thresholds: [t], draw };
}

// ---- Memory: permanent coins ------------------------------------------------------------------

const ascii = (text) => new TextEncoder().encode(text);
const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
const whole = (bytes) => BigInt("0x" + hex(bytes));

/** JSON with sorted keys, every letter outside ASCII escaped, and no spaces unless told. */
function canonical(found, comma = ",", colon = ":") {
  const inner = (part) => canonical(part, comma, colon);
  if (Array.isArray(found)) return "[" + found.map(inner).join(comma) + "]";
  if (found !== null && typeof found === "object") {
    const parts = Object.keys(found).sort();
    return "{" + parts.map((k) => inner(k) + colon + inner(found[k])).join(comma) + "}";
  }
  const escape = (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0");
  return JSON.stringify(found).replace(/[^ -~]/g, escape);
}

/**
 * What a device remembers: 32 secret bytes, made once and kept there, and what it has been asked.
 *
 *   const memory = new Memory(crypto.getRandomValues(new Uint8Array(32)));
 *   save(memory.key, memory.asked);              // and later: new Memory(key, asked)
 */
export class Memory {
  #key;
  #asked;
  #mac;
  #cipher;

  constructor(key, asked = {}) {
    if (!(key instanceof Uint8Array) || key.length !== 32) {
      throw new TypeError("key must be 32 bytes");
    }
    this.#key = key.slice();
    this.#asked = new Map(Object.entries(asked));
  }

  get key() {
    return this.#key.slice();
  }

  get asked() {
    return Object.fromEntries(this.#asked);
  }

  async #hmac(bytes) {
    this.#mac ??= await crypto.subtle.importKey(
      "raw", this.#key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    return new Uint8Array(await crypto.subtle.sign("HMAC", this.#mac, bytes));
  }

  /** The label of a question in this form; another form of a question that was asked throws. */
  async label(question, form) {
    if (typeof question !== "string" || !question) {
      throw new Error("reports from memory need a channel with a question");
    }
    const label = hex(await sha256(ascii(canonical({ ...form, question }))));
    if ((this.#asked.get(question) ?? label) !== label) {
      throw new Error("this device has answered the question under other settings");
    }
    this.#asked.set(question, label);
    return label;
  }

  /** The number of 128 bits at which the words of a user and code begin. */
  async start(label, user, code) {
    const name = textBytes(user);
    const parts = [ascii(label + "\0" + name.length + ":"), name, Uint8Array.of(0), code];
    const joined = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
    let at = 0;
    for (const part of parts) {
      joined.set(part, at);
      at += part.length;
    }
    return whole((await this.#hmac(joined)).subarray(0, 16));
  }

  /** `count` words of 64 bits from a place on. */
  async words(place, count) {
    this.#cipher ??= await crypto.subtle.importKey(
      "raw", await this.#hmac(ascii("expand")), "AES-CTR", false, ["encrypt"]);
    const text = (place & ((1n << 128n) - 1n)).toString(16).padStart(32, "0");
    const counter = Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
    const blocks = new Uint8Array(16 * Math.ceil(count / 2));
    const stream = await crypto.subtle.encrypt(
      { name: "AES-CTR", counter, length: 128 }, this.#cipher, blocks);
    const view = new DataView(stream);
    return Array.from({ length: count }, (_, i) => view.getBigUint64(8 * i, true));
  }
}

/**
 * RAPPOR's chances out of 2**64: of a flipped permanent bit, and of a 1 where it is 0, and 1, where
 * two values differ in so many bits.
 */
function layers(described, differing) {
  if (described.noise) {
    const [f, p, q] = described.noise.map(ratio);
    const floor = ([a, b]) => (a << 64n) / b;
    const flip = ONE - floor([2n * f[1] - f[0], 2n * f[1]]);
    return [flip, ONE - floor([p[1] - p[0], p[1]]), floor(q)];
  }
  const [a, b] = fraction(described.epsilon);
  const flip = ONE - threshold(expLower([a, differing * b]), [1, 0], [1, 1]);
  if (described.once === null) return [flip, 0n, ONE];
  const [c, d] = fraction(described.once);
  const rest = ONE - 2n * flip;
  const high = threshold(expLower([c, differing * d]), [ONE - flip, -flip], [rest, rest]);
  return high > 0n ? [flip, ONE - high, high] : [flip, ONE, 0n];
}

/** The thresholds, the coin of a flipped permanent bit, and the second layer of a bit. */
function twoLayers(described, differing) {
  const ts = layers(described, differing);
  const [flips, lows] = [halves(ts[0]), ts[1] === ONE ? null : halves(ts[1])];
  const highs = ts[2] === ONE ? null : halves(ts[2]);
  const one = () => (highs ? coin(highs) : 1);
  const zero = () => (lows ? coin(lows) : 1);
  const still = highs === null && ts[1] === 0n;
  return [ts, () => coin(flips), (bit) => (still ? bit : choose(bit, one(), zero()))];
}

/** Set bit j of packed bits where `bit` is 1. */
const put1 = (out, j, bit) => (out[j >> 3] |= bit << (7 - (j & 7)));

function rappor(described, k) {
  const [ts, flipped, second] = twoLayers(described, 2n);
  const flip = ts[0];
  const draw = (x, out) => {
    for (let j = 0; j < k; j++) put1(out, j, second(Number(j === x) ^ flipped()));
  };
  const other = described.domain.other === undefined ? null : described.domain;
  const remember = async (x, out, user, memory, channel) => {
    const form = { channel: "rappor", flip: String(flip), other };
    const label = await memory.label(described.question, form);
    const held = textBytes(channel.value(x));
    const code = new Uint8Array([...ascii(`v${held.length}:`), ...held]);
    const start = await memory.start(label, user, code);
    for (let j = 0; j < k; j++) {
      const place = whole((await sha256(textBytes(channel.value(j)))).subarray(0, 16));
      const [own] = await memory.words(start + place, 1);
      put1(out, j, second(Number(j === x) ^ Number(own < flip)));
    }
  };
  return { bytes: Math.ceil(k / 8), thresholds: ts, draw, remember };
}

/** RAPPOR over any texts: two bytes of a cohort, and the noisy bits of the value's filter in it. */
function bloom(described) {
  const { bits, hashes, cohorts, seed } = described;
  const whole_ = (n, low, high) => Number.isSafeInteger(n) && n >= low && n <= high;
  const sizes = whole_(bits, 2, 4096) && whole_(hashes, 1, 16) && whole_(seed, 0, 2 ** 32 - 1);
  if (!sizes || !whole_(cohorts, 1, 65536) || cohorts & (cohorts - 1)) {
    throw new RangeError("the filter's sizes are out of range");
  }
  const [ts, flipped, second] = twoLayers(described, 2n * BigInt(hashes));
  /** Which bits the bytes of a value set in a cohort. */
  const filter = (bytes, cohort) => {
    const set = new Uint8Array(bits);
    for (let i = 0; i < hashes; i++) {
      const [high] = hash64(bytes, [seed, cohort * hashes + i]);
      set[Math.floor((high * bits) / 2 ** 32)] = 1;
    }
    return set;
  };
  const fill = (out, cohort, permanent) => {
    put(out, cohort, 0, 2);
    const rest = out.subarray(2);
    permanent.forEach((bit, j) => put1(rest, j, second(bit)));
  };
  const draw = (bytes, out) => {
    const cohort = below(cohorts);
    fill(out, cohort, filter(bytes, cohort).map((bit) => bit ^ flipped()));
  };
  const remember = async (bytes, out, user, memory) => {
    const { domain, hash, ...wire } = described;
    const device = hex(await sha256(ascii(canonical(wire, ", ", ": "))));
    const label = await memory.label(described.question, { device });
    const [first] = await memory.words(await memory.start(label, user, new Uint8Array()), 1);
    const cohort = Number(first % BigInt(cohorts));
    const code = new Uint8Array([...ascii(`v${bytes.length}:`), ...bytes]);
    const own = await memory.words(await memory.start(label, user, code), bits);
    const flips = own.map((w) => Number(w < ts[0]));
    fill(out, cohort, filter(bytes, cohort).map((bit, j) => bit ^ flips[j]));
  };
  return { bytes: 2 + Math.ceil(bits / 8), thresholds: ts, draw, remember, open: true };
}

function loloha(described) {
  const g = described.buckets;
  if (!(g >= 2 && g <= 4096)) throw new RangeError("buckets must be from 2 to 4096");
  const n = BigInt(g - 1);
  const M = ONE / n;
  const P = threshold(expLower(fraction(described.epsilon_inf)), [M, 0], [M, ONE]);
  const lie = (ONE - P) * M;
  const level = [ONE * ONE - lie, -(ONE - P) * ONE];
  const slope = [level[0] - lie * n, level[1] + P * ONE * n];
  const reached = threshold(expLower(fraction(described.epsilon)), level, slope);
  const instant = reached < ONE ? reached : ONE;
  const [kept, told] = [halves(P), instant === ONE ? null : halves(instant)];
  const finish = (seed, answer, out) => {
    const moved = another(answer, g);
    put(out, seed, 0, 4);
    put(out, told ? choose(coin(told), answer, moved) : answer, 4);
  };
  const draw = (x, out) => {
    const seed = word();
    const right = bucket(wordOf(seed, x), g);
    const moved = another(right, g);
    finish(seed, choose(coin(kept), right, moved), out);
  };
  const remember = async (x, out, user, memory) => {
    const label = await memory.label(described.question, { channel: described.hash });
    const [first] = await memory.words(await memory.start(label, user, new Uint8Array()), 1);
    const seed = Number(first & 0xffffffffn);
    const right = bucket(wordOf(seed, x), g);
    const start = await memory.start(label, user, ascii(String(right)));
    const [a, b] = await memory.words(start, 2);
    const moved = (right + Number((b * n) >> 64n) + 1) % g;
    finish(seed, a < P ? right : moved, out);
  };
  return { bytes: g <= 256 ? 5 : 6, thresholds: [P, instant], draw, remember };
}

// ---- Numbers ----------------------------------------------------------------------------------

/** A number, or a text of one, as two whole numbers; a double by its shortest decimals. */
function ratio(number) {
  const text = typeof number === "number" || typeof number === "string" ? String(number) : "";
  const found = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:e([+-]?[0-9]{1,4}))?(?:\/([0-9]+))?$/.exec(text);
  if (!found) throw new TypeError("a value must be a number");
  const [, sign, digits, decimals = "", power = "0", below_ = "1"] = found;
  const shift = Number(power) - decimals.length;
  const top = BigInt(digits + decimals) * 10n ** BigInt(Math.max(shift, 0));
  return [sign ? -top : top, BigInt(below_) * 10n ** BigInt(Math.max(-shift, 0))];
}

/** The public bounds of numbers, and the points that they are rounded to. */
class Interval {
  constructor({ low, high, steps, clamp = false }) {
    [this.low, this.high] = [ratio(low), ratio(high)];
    const [[a, b], [c, d]] = [this.low, this.high];
    if (a * d >= c * b) throw new RangeError("low must be below high");
    if (!(Number.isSafeInteger(steps) && steps >= 2 && steps <= 65536)) {
      throw new RangeError("steps must be a whole number from 2 to 65536");
    }
    [this.steps, this.clamp] = [steps, clamp];
  }

  /** To one of the two next points, so that the expectation is the value. */
  round(value) {
    const [[a, b], [c, d], [e, f]] = [ratio(value), this.low, this.high];
    const top = (a * d - c * b) * f * BigInt(this.steps);
    const base = b * (e * d - c * f);
    const outside = top < 0n || top > base * BigInt(this.steps);
    if (outside && !this.clamp) throw new RangeError("the value is outside the public bounds");
    const random = (BigInt(word()) << 32n) | BigInt(word());
    if (outside) return top < 0n ? 0 : this.steps;
    const point = Number(top / base);
    const part = ((top % base) << 64n) / base;
    let up = Number(random < part);
    if (this.apart && part > 0n) {
      // A value outside the class never becomes one of its points.
      const [first, last] = this.apart;
      up = (up & ~Number(point === first - 1)) | Number(point === last);
    }
    return point + up;
  }
}

/** The threshold of Duchi's coin, and how to draw an end: 1 the upper, 0 the lower. */
function ends(described, steps) {
  const t = threshold(expLower(fraction(described.epsilon)), [1, 0], [1, 1]);
  const kept = halves(t);
  return [t, (x) => {
    const up = Number(below(steps) < x);
    return 1 - (up ^ coin(kept));
  }];
}

function duchi(described, k) {
  const [t, draw] = ends(described, k - 1);
  return scalar(2, [t], draw);
}

/** The whole number next to a/b; of two, the even one. */
function nearest(a, b) {
  const [found, rest] = [a / b, 2n * (a % b)];
  return found + (rest > b || (rest === b && found % 2n === 1n) ? 1n : 0n);
}

/** A window of `width` positions that begins at the point's own number: law and outputs. */
function windowed(described, k, width) {
  const steps = k - 1;
  const W = Math.min(Math.max(Number(width), 1), steps);
  const t = threshold(expLower(fraction(described.epsilon)), [W, 0], [W, steps]);
  const inside = halves(t);
  return [t, steps + W, (x) => {
    const within = x + below(W);
    const away = below(steps);
    const without = away + W * Number(away >= x);
    return choose(coin(inside), within, without);
  }];
}

/** PM's window: N/√e positions, to the nearest whole number. */
function pmWindow(described, k) {
  const [a, b] = fraction(described.epsilon);
  return windowed(described, k, nearest(BigInt(k - 1) << SCALE, expLower([a, 2n * b])));
}

function pm(described, k) {
  const [t, outputs, draw] = pmWindow(described, k);
  return scalar(outputs, [t], draw);
}

/** PM by a public coin, else Duchi's two ends, numbered after PM's positions. */
function hybrid(described, k) {
  const [a, b] = fraction(described.epsilon);
  const [truth, end] = ends(described, k - 1);
  if (100n * a <= 61n * b) return scalar(2, [truth], end);
  const [t, outputs, window_] = pmWindow(described, k);
  const arm = threshold(expLower([a, 2n * b]), [1, -1], [1, 0]);
  const wide = halves(arm);
  return scalar(outputs + 2, [arm, t, truth], (x) => {
    const [y, other] = [window_(x), outputs + end(x)];
    return choose(coin(wide), y, other);
  });
}

/** 1 with probability e**(-a/b), exactly, for a from 0 to b. */
function tossExp(a, b) {
  let k = 1n;
  while (toss(a, b * k)) k += 1n;
  return Number(k & 1n);
}

/**
 * A whole number z with chance proportional to e**(-|z|·s/t), exactly.
 *
 * Source. Canonne, Kamath and Steinke, NeurIPS 2020, algorithm 2.
 */
function discreteLaplace(t, s) {
  for (;;) {
    const u = belowWhole(t);
    if (!tossExp(u, t)) continue;
    let v = 0n;
    while (tossExp(1n, 1n)) v += 1n;
    const size = Number((u + t * v) / s);
    const negative = word() & 1;
    if (!(negative && size === 0)) return negative ? -size : size;
  }
}

/** Discrete Laplace noise of scale N/ε steps, clamped 16 scales beyond either end. */
function laplace(described, k) {
  const [a, b] = fraction(described.epsilon);
  const steps = k - 1;
  const scale = BigInt(steps) * b;
  const reach = Number((16n * scale + a - 1n) / a);
  const outputs = steps + 2 * reach + 1;
  if (outputs > 1 << 24) throw new RangeError("the interval has too many steps for the epsilon");
  return scalar(outputs, [BigInt(reach)], (x) => {
    const noisy = x + reach + discreteLaplace(scale, a);
    return Math.min(Math.max(noisy, 0), outputs - 1);
  });
}

function sw(described, k) {
  const [a, b] = fraction(described.epsilon);
  const [E, one] = [expLower([a, b]), 1n << SCALE];
  // 2N·(εe - e + 1)/(2e(e - 1 - ε)), each of e times 2**384 and of ε times b.
  const top = BigInt(k - 1) * (a * E - b * E + b * one) * one;
  const width = nearest(top, E * (b * E - b * one - a * one));
  const [t, outputs, draw] = windowed(described, k, width);
  return scalar(outputs, [t], draw);
}

/** The greatest common divisor. */
const divisor = (a, b) => (b === 0n ? a : divisor(b, a % b));

/** High numbers by a window law; low ones as they are, or anywhere outside the low range. */
function sdpm(described, k) {
  const [a, b] = fraction(described.epsilon);
  const [N, one] = [BigInt(k - 1), 1n << SCALE];
  const [e, s] = [expLower([a, b]) - one, expLower([a, 2n * b]) - one];
  const near = nearest(N << SCALE, s);
  const W = near > 1n ? near : 1n;
  const [top, base] = [e * W * (N + W), e * W - N * one];
  let M = (top + base - 1n) / base;
  M += (M - 1n - N) % 2n;
  if (M > 1n << 24n) throw new RangeError("the interval has too many steps for the epsilon");
  const { low, high } = described.interval;
  const [[c, d], [f, g]] = [ratio(low), ratio(high)];
  const place = (text) => {
    const [x, y] = ratio(text);
    return [(x * d - c * y) * g * N, y * (f * d - c * g)];
  };
  if (described.low_range?.length !== 2) throw new TypeError("low_range must be two numbers");
  const [[p, q], [r, t]] = described.low_range.map(place);
  const [first, last] = [Number((p + q - 1n) / q), Number(r / t)];
  if (!(first >= 0 && first <= last && last <= k - 1 && last - first < k - 1)) {
    throw new RangeError("the low range must hold some points of the interval and not all");
  }
  const lows = last - first + 1;
  const [outputs, width, steps] = [Number(M), Number(W), k - 1];
  const offset = (outputs - 1 - steps) / 2;
  // p' = 1 - (M - m)·q, in lowest terms.
  const under = M * (M - W);
  const over = under - (M - BigInt(lows)) * (M - N - W);
  const common = divisor(over, under);
  const [told, of] = [over / common, under / common];
  const moved = outputs - width;
  const draw = (x) => {
    // Both laws for everyone; the class says which counts.
    const part = (x * moved) % steps;
    const begin = (x * moved - part) / steps + (moved % steps ? Number(below(steps) < part) : 0);
    const within = begin + below(width);
    const away = below(moved);
    const without = away + width * Number(away >= begin);
    const asHigh = choose(toss(N + W, M), within, without);
    const other = below(outputs - lows);
    const outside = other + lows * Number(other >= first + offset);
    const asLow = choose(toss(told, of), x + offset, outside);
    return choose(Number(x >= first) & Number(x <= last), asLow, asHigh);
  };
  return { ...scalar(outputs, [M, W, told, of], draw), apart: [first, last] };
}

const KINDS = {
  __proto__: null,
  grr,
  sdgrr,
  urr,
  sue,
  oue,
  blh: olh,
  olh,
  flh,
  hadamard,
  subset,
  rappor,
  "bloom-rappor": bloom,
  loloha,
  duchi,
  pm,
  hybrid,
  laplace,
  sw,
  sdpm,
};
