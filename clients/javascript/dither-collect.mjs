/**
 * Sending local reports to a collector, from a browser or under Node. No dependencies.
 *
 *   const survey = await loadSurvey("https://collect.example/collect/flu", owner);
 *   const device = await Device.make();                    // and keep it: device.save()
 *   const tokens = await survey.ask(device);               // in the morning
 *   await survey.post([survey.channel.report("flu")], tokens.pop());   // some time later
 *
 * `owner` is the owner's public key, "dither-owner-" and 64 hexadecimal digits. It comes with the
 * page or the app, and from nowhere else: whatever the collector says is held against it, so that
 * neither the collector nor anybody between can lower the noise.
 *
 * A token pays for one post and says nothing of the device that asked for it (blind signatures,
 * RFC 9474). Asking and posting still come from one address: let some hours lie between.
 */

import { loadChannel } from "./dither-local.mjs";

const PREFIX = 32;
const SALT = 48;
const MAGIC = "DITHERCP";
const PURPOSE = "survey configuration";
const BINARY = "application/vnd.dither.reports";

const ascii = (text) => new TextEncoder().encode(text);
const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (two) => parseInt(two, 16));
const random = (n) => crypto.getRandomValues(new Uint8Array(n));

function base64(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

const unbase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

async function hash(name, bytes) {
  return new Uint8Array(await crypto.subtle.digest(name, bytes));
}

function joined(...parts) {
  const found = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    found.set(part, at);
    at += part.length;
  }
  return found;
}

/* Numbers of RSA. */

const whole = (bytes) => BigInt("0x" + (hex(bytes) || "0"));
const bytesOf = (number, size) => unhex(number.toString(16).padStart(2 * size, "0"));

function power(base, exponent, n) {
  let found = 1n;
  for (let b = base % n, e = exponent; e > 0n; e >>= 1n, b = (b * b) % n) {
    if (e & 1n) found = (found * b) % n;
  }
  return found;
}

/** The inverse modulo n, or null where there is none. */
function inverse(a, n) {
  let [r, next, s, other] = [n, a % n, 0n, 1n];
  while (next > 0n) {
    const q = r / next;
    [r, next] = [next, r - q * next];
    [s, other] = [other, s - q * other];
  }
  return r === 1n ? ((s % n) + n) % n : null;
}

function belowN(n, size) {
  for (;;) {
    const found = whole(random(size));
    if (found < n && found > 0n) return found;
  }
}

async function mask(seed, length) {
  const made = [];
  for (let i = 0; i * SALT < length; i++) {
    made.push(await hash("SHA-384", joined(seed, Uint8Array.of(0, 0, 0, i))));
  }
  return joined(...made).subarray(0, length);
}

/** EMSA-PSS with SHA-384, RFC 8017, 9.1.1. */
async function encoded(message, bits, salt) {
  const size = Math.ceil(bits / 8);
  const first = await hash("SHA-384", message);
  const hashed = await hash("SHA-384", joined(new Uint8Array(8), first, salt));
  const block = new Uint8Array(size - hashed.length - 1);
  block[block.length - salt.length - 1] = 1;
  block.set(salt, block.length - salt.length);
  const masked = await mask(hashed, block.length);
  for (let i = 0; i < block.length; i++) masked[i] ^= block[i];
  masked[0] &= 0xff >> (8 * size - bits);
  return joined(masked, hashed, Uint8Array.of(0xbc));
}

/** A message made unreadable for who signs it: what is sent, and what undoes it. */
export async function blind(key, message, salt = random(SALT), factor = null) {
  const m = whole(await encoded(message, key.bits - 1, salt));
  for (;;) {
    const r = factor ?? belowN(key.n, key.size);
    const undo = inverse(r, key.n);
    if (undo !== null) {
      return { blinded: bytesOf((m * power(r, key.e, key.n)) % key.n, key.size), undo };
    }
  }
}

/** The signature of the message itself; throws where the answer is none. */
export async function finalize(key, message, answer, undo) {
  if (answer.length !== key.size) throw new Error("the answer is no signature of the token");
  const found = bytesOf((whole(answer) * undo) % key.n, key.size);
  const url = (bytes) => base64(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
  const jwk = { kty: "RSA", n: url(bytesOf(key.n, key.size)), e: "AQAB" };
  const pss = { name: "RSA-PSS", hash: "SHA-384" };
  const known = await crypto.subtle.importKey("jwk", jwk, pss, false, ["verify"]);
  const holds = await crypto.subtle.verify(
    { name: "RSA-PSS", saltLength: SALT }, known, found, message);
  if (!holds) throw new Error("the answer is no signature of the token");
  return found;
}

/** The numbers of a survey's token key. */
export function tokenKey({ n, e }) {
  if (e !== 65537) throw new Error("the survey's token key is not one that is known here");
  const number = BigInt("0x" + n);
  const bits = number.toString(2).length;
  if (bits < 2048 || bits > 4096 || bits % 8) {
    throw new Error("the survey's token key must have 2048 to 4096 bits");
  }
  return { n: number, e: 65537n, bits, size: bits / 8 };
}

/** A device's own key, by which the days are told apart and nothing else. */
export class Device {
  #pair;

  constructor(pair) {
    this.#pair = pair;
  }

  /** A new key. */
  static async make() {
    return new Device(await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"]));
  }

  /** The device of what `save` gave. */
  static async load({ secret, id }) {
    const key = (form, text, use) =>
      crypto.subtle.importKey(form, unbase64(text), "Ed25519", true, [use]);
    return new Device({
      privateKey: await key("pkcs8", secret, "sign"),
      publicKey: await key("raw", id, "verify"),
    });
  }

  /** What stays on the device. */
  async save() {
    const key = await crypto.subtle.exportKey("pkcs8", this.#pair.privateKey);
    return { secret: base64(new Uint8Array(key)), id: await this.id() };
  }

  async id() {
    return base64(new Uint8Array(await crypto.subtle.exportKey("raw", this.#pair.publicKey)));
  }

  async sign(bytes) {
    return base64(new Uint8Array(
      await crypto.subtle.sign("Ed25519", this.#pair.privateKey, bytes)));
  }
}

/** What a collector refused: `kind` says why, as its answer does. */
export class Refused extends Error {
  constructor(status, kind, message) {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

async function answered(response) {
  let body = null;
  try {
    body = await response.json();
  } catch {
    // An answer of somebody between: its status says enough.
  }
  if (response.ok && body !== null) return body;
  const told = body?.error ?? {};
  throw new Refused(response.status, told.kind ?? "unknown", told.message ?? "no answer");
}

/**
 * A survey, by the address of its collector, once its owner's signature holds.
 *
 * @param {string} url    such as https://collect.example/collect/flu
 * @param {string} owner  the owner's public key, from a source that the device trusts
 */
export async function loadSurvey(url, owner, { fetch = globalThis.fetch } = {}) {
  const found = await answered(await fetch(`${url}/config`));
  const text = found.configuration;
  const raw = unhex(owner.replace(/^dither-owner-/, ""));
  const key = await crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"]);
  const covered = joined(
    ascii(`dither signature 1\n${PURPOSE.length} ${PURPOSE}\n`),
    await hash("SHA-256", ascii(text)));
  if (!(await crypto.subtle.verify("Ed25519", key, unbase64(found.signature), covered))) {
    throw new Error("the survey's configuration is not signed by its owner");
  }
  const body = JSON.parse(text);
  if (body.version !== 1) throw new Error("the survey's configuration must be of version 1");
  if (body.name !== url.replace(/\/+$/, "").split("/").pop()) {
    throw new Error("the configuration is of a survey of another name");
  }
  const described = sorted(body.channel);
  const digest = hex(await hash("SHA-256", ascii(described)));
  return new Survey(url, body, await hash("SHA-256", ascii(text)),
    await loadChannel(described, digest), fetch);
}

/** Canonical JSON, whose numbers are small whole ones: keys sorted, ASCII only. */
function sorted(found) {
  if (Array.isArray(found)) return `[${found.map(sorted).join(",")}]`;
  if (found !== null && typeof found === "object") {
    const keys = Object.keys(found).sort();
    return `{${keys.map((key) => `${quoted(key)}:${sorted(found[key])}`).join(",")}}`;
  }
  return typeof found === "string" ? quoted(found) : JSON.stringify(found);
}

const quoted = (text) =>
  JSON.stringify(text).replace(
    /[\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

class Survey {
  #url;
  #fetch;
  #key;

  constructor(url, body, digest, channel, fetch) {
    this.#url = url.replace(/\/+$/, "");
    this.#fetch = fetch;
    this.#key = tokenKey(body.token_key);
    this.digest = digest;
    this.channel = channel;
    this.reports = body.reports;
  }

  /** So many tokens for today; each pays for one post. */
  async ask(device, number = 1, day = new Date().toISOString().slice(0, 10)) {
    const kept = [];
    for (let i = 0; i < number; i++) {
      const message = joined(random(PREFIX), this.digest);
      kept.push({ message, ...(await blind(this.#key, message)) });
    }
    const all = hex(await hash("SHA-256", joined(...kept.map((one) => one.blinded))));
    const signature = await device.sign(
      ascii(`dither tokens 1\n${hex(this.digest)}\n${day}\n${number}\n${all}`));
    const body = JSON.stringify({
      device: await device.id(), day, signature, blinded: kept.map((one) => base64(one.blinded)),
    });
    const { signed } = await this.#send(`${this.#url}/tokens`, "application/json", body, 3);
    if (!Array.isArray(signed) || signed.length !== number) {
      throw new Error("the answer has another number of tokens");
    }
    return Promise.all(kept.map(async ({ message, undo }, i) => joined(
      message.subarray(0, PREFIX),
      await finalize(this.#key, message, unbase64(signed[i]), undo))));
  }

  /**
   * Send the records that one token pays for; resolves once they are on the collector's disk.
   *
   * Where no answer comes it is sent again: a token counts once, however often it comes.
   *
   * @param {Uint8Array[]} records  from `survey.channel`, at most `survey.reports`
   * @param {Uint8Array} token      from `ask`
   */
  async post(records, token, { tries = 5 } = {}) {
    const size = this.channel.recordBytes;
    if (records.length < 1 || records.length > this.reports) {
      throw new RangeError(`a token of this survey pays for 1 to ${this.reports} records`);
    }
    if (records.some((record) => record.length !== size)) {
      throw new TypeError("records must be of the survey's channel");
    }
    if (token.length !== PREFIX + this.#key.size) throw new TypeError("this is no token");
    const head = joined(ascii(MAGIC), Uint8Array.of(1, 0), this.digest, Uint8Array.of(1, 0));
    const number = Uint8Array.of(records.length & 255, records.length >> 8);
    const body = joined(head, token, number, ...records);
    return this.#send(this.#url, BINARY, body, tries);
  }

  async #send(url, type, body, tries) {
    for (let i = 1; ; i++) {
      let found = null;
      try {
        const response = await this.#fetch(
          url, { method: "POST", headers: { "content-type": type }, body });
        return await answered(response);
      } catch (error) {
        found = error;
      }
      // What a collector refused by its content is refused again.
      const again = !(found instanceof Refused) || found.status === 429 || found.status >= 500;
      if (!again || i >= tries) throw found;
      await pause(Math.min(30, 2 ** i / 4) * (0.5 + random(1)[0] / 255));
    }
  }
}
