"""The client for browsers, under Node: vectors of the RFC, and a survey from end to end."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dither.service.collect._blind import blind_sign
from service.collect.conftest import Made, Surveyed
from service.collect.test_blind import INVERSE, MESSAGE, SALT, VECTORS, P, Q, key_of
from service.collect.test_routes import served

CLIENT = Path(__file__).parents[3] / "clients" / "javascript" / "dither-collect.mjs"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(
    NODE is None or not CLIENT.exists(), reason="Node, or the client's source, is not here"
)


def node(script: str, *arguments: str) -> Any:
    """Run a script that has the client as `client` and arguments as `given`; its JSON."""
    whole = (
        f"import * as client from {json.dumps(CLIENT.as_uri())};\n"
        "const given = process.argv.slice(1);\n" + script
    )
    run = subprocess.run(
        [str(NODE), "--no-warnings", "--input-type=module", "-e", whole, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


@pytest.mark.parametrize("variant", VECTORS)
def test_vectors_of_the_rfc(variant: str) -> None:
    """What is blinded here, and the signature that comes of the RFC's answer."""
    prefix, blinded, _, token = VECTORS[variant]
    n = P * Q
    message = bytes.fromhex(prefix) + MESSAGE
    found = node(
        """
        const [n, message, salt, factor] = given;
        const unhex = (text) => Uint8Array.from(Buffer.from(text, "hex"));
        const key = client.tokenKey({ n, e: 65537 });
        const made = await client.blind(key, unhex(message), unhex(salt), BigInt("0x" + factor));
        console.log(JSON.stringify({
          blinded: Buffer.from(made.blinded).toString("hex"), undo: made.undo.toString(16) }));
        """,
        f"{n:x}",
        message.hex(),
        SALT.hex(),
        f"{pow(INVERSE, -1, n):x}",
    )
    assert int(found["undo"], 16) == INVERSE
    assert found["blinded"].startswith(blinded[0])
    assert found["blinded"].endswith(blinded[1])
    answer = blind_sign(key_of(P, Q), bytes.fromhex(found["blinded"]))
    signature = node(
        """
        const [n, message, answer, undo] = given;
        const unhex = (text) => Uint8Array.from(Buffer.from(text, "hex"));
        const key = client.tokenKey({ n, e: 65537 });
        const found = await client.finalize(
          key, unhex(message), unhex(answer), BigInt("0x" + undo));
        console.log(JSON.stringify(Buffer.from(found).toString("hex")));
        """,
        *(f"{n:x}", message.hex(), answer.hex(), found["undo"]),
    )
    assert signature.startswith(token[0])
    assert signature.endswith(token[1])


SURVEY = """
const [url, owner] = given;
let lost = 0;
const fetch = async (to, how) => {
  const answer = await globalThis.fetch(to, how);
  // The first answer to a post is lost on its way.
  if (how?.method === "POST" && to === url && !lost++) throw new TypeError("no network");
  return answer;
};
const survey = await client.loadSurvey(url, owner, { fetch });
const device = await client.Device.load(await (await client.Device.make()).save());
const told = async (made) => {
  try { return await made(); } catch (error) { return error.kind ?? error.message; }
};
const tokens = await survey.ask(device, 2);
const record = survey.channel.report("flu");
const first = await survey.post([record], tokens[0]);
const second = await survey.post([record], tokens[1]);
const forged = tokens[0].slice();
forged[100] ^= 1;
console.log(JSON.stringify({
  first, second, lost,
  again: await survey.post([record], tokens[1]),
  forged: await told(() => survey.post([record], forged)),
  many: await told(() => survey.post([record, record], tokens[0])),
  asked: await told(() => survey.ask(device)),
  stranger: await told(() => client.loadSurvey(url, "dither-owner-" + "07".repeat(32))),
  yesterday: await told(() => survey.ask(device, 1, "2020-01-01")),
}));
"""


def test_a_survey_from_end_to_end(survey: Surveyed, collector: Made) -> None:
    """Tokens are asked for and spent; an answer that is lost counts nothing twice."""
    found = collector(flu={"daily": 2})
    with served(found) as port:
        url = f"http://127.0.0.1:{port}/collect/flu"
        told = node(SURVEY, url, survey.owner.public.text)
        assert told["first"] == {"counted": 0, "spent": 1}, (
            "it was counted before its answer was lost"
        )
        assert told["second"] == {"counted": 1, "spent": 0}
        assert told["again"] == {"counted": 0, "spent": 1}
        assert told["forged"] == told["asked"] == told["yesterday"] == "token"
        assert "pays for 1 to 1" in told["many"]
        assert told["stranger"] == "the survey's configuration is not signed by its owner"
        assert found.counts("flu").n == 2
