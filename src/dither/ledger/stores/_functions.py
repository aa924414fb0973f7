"""The functions of a PostgreSQL ledger, through which those who ask charge it, and nothing else.

A role that asks may read the tables, and call ``locked``, ``append_charge``, ``append_reserve`` and
``append_answer``.
They run as the owner of the tables (``SECURITY DEFINER``), and trust nothing of their caller; what
they call themselves nobody else may call. What
is asked for comes in as arguments: which accounts, how much, under which promise, of which tables
and blocks. All else they work out again by themselves, in exact numbers, from what stands in the
ledger: the entry's number, time, totals, blocks' states and hash. So there is nothing to forge; and
what a caller could say wrongly is held against the ledger and refused.

What a session may set for itself changes nothing within them: names are looked up in ``pg_catalog``
first and among temporary tables last, every table is named with its schema, text is compared and
sorted byte by byte, and no literal has a backslash, which a setting could give another meaning.

Of an argument in JSON only the one canonical text is taken. ``canonical`` writes it anew from what
was parsed, so that a key given twice, a number with a point, or an escape that another reader might
take for something else is refused.

It is long because these texts call each other, and are read beside each other.
"""

from __future__ import annotations

from dither.ledger._entries import DOMAINS, FORMAT, HASHED, MORE, MOST_SOURCES

__all__ = ["CALLED", "HELPERS", "REFUSALS"]

REFUSALS = {
    "budget": "DTH02",
    "promise": "DTH03",
    "token": "DTH04",
    "closed": "DTH05",
    "caller": "DTH06",
    "malformed": "DTH07",
    "reservation": "DTH08",
}
"""The SQLSTATE of each kind of refusal."""

_RULES = "question|day|week|month|quarter|year|unlock"
"""What may stand behind the @ of a quota's name: the account of a rule of its own."""

LONGEST_DAYS = 366
"""So long a reservation may last: ``LONGEST`` of `dither.ledger.quotas`."""

_DIGITS = 1018
"""So many digits a number may have; no amount of the ledger has more."""


def _refuse(kind: str, said: str) -> str:
    return f"RAISE EXCEPTION '{said}' USING ERRCODE = '{REFUSALS[kind]}';"


_PLAIN_COLUMNS = ("number", "answers")
_HASHED_TEXT = " || ',' || ".join(
    f"""'"{name}":' || """
    + (
        f"coalesce((e).{name}::text, 'null')"
        if name in _PLAIN_COLUMNS
        else f"{{schema}}.said((e).{name})"
    )
    for name in HASHED[FORMAT]
)

# Name, arguments, what is returned, language and volatility, body; {schema} is quoted.
HELPERS: dict[str, tuple[str, str, str, str]] = {
    # A text in JSON as Python writes it: ASCII, everything else escaped.
    "said": (
        "value text",
        "text",
        "plpgsql IMMUTABLE",
        """
BEGIN
IF value IS NULL THEN RETURN 'null';
ELSIF value COLLATE "C" ~ '^[ -~]*$' THEN
    RETURN '"' || replace(replace(value, chr(92), chr(92) || chr(92)), '"', chr(92) || '"') || '"';
END IF;
RETURN '"' || (
    SELECT string_agg(CASE
        WHEN c IN ('"', chr(92)) THEN chr(92) || c
        WHEN n BETWEEN 32 AND 126 THEN c
        WHEN n = 8 THEN chr(92) || 'b' WHEN n = 9 THEN chr(92) || 't'
        WHEN n = 10 THEN chr(92) || 'n' WHEN n = 12 THEN chr(92) || 'f'
        WHEN n = 13 THEN chr(92) || 'r'
        WHEN n < 65536 THEN chr(92) || 'u' || lpad(to_hex(n), 4, '0')
        ELSE chr(92) || 'u' || to_hex(55296 + ((n - 65536) >> 10))
            || chr(92) || 'u' || to_hex(56320 + ((n - 65536) & 1023))
        END, '' ORDER BY place)
    FROM (
        SELECT c, ascii(c) AS n, place
        FROM regexp_split_to_table(value, '') WITH ORDINALITY AS x(c, place)
    ) AS characters
) || '"';
END""",
    ),
    # Whether a text is a whole number of at least 0, and not too long to be read.
    "whole": (
        "value text",
        "boolean",
        "plpgsql IMMUTABLE",
        f"""
BEGIN
RETURN coalesce(value ~ '^(0|[1-9][0-9]*)$' AND length(value) <= {_DIGITS}, false);
END""",
    ),
    # The one text of what was parsed; whole numbers alone, and nothing too deep to be read again.
    "canonical": (
        "held jsonb, depth integer",
        "text",
        "plpgsql IMMUTABLE",
        f"""
DECLARE
    kind text := jsonb_typeof(held);
    found text;
BEGIN
IF depth > 100 THEN {_refuse("malformed", "too deep")} END IF;
IF kind = 'object' THEN
    SELECT string_agg({{schema}}.said(e.key) || ':'
        || CASE jsonb_typeof(e.value) WHEN 'string' THEN {{schema}}.said(e.value #>> '{{}}')
           ELSE {{schema}}.canonical(e.value, depth + 1) END, ',' ORDER BY e.key COLLATE "C")
    INTO found FROM jsonb_each(held) AS e;
    RETURN '{{' || coalesce(found, '') || '}}';
ELSIF kind = 'array' THEN
    SELECT string_agg(
        CASE jsonb_typeof(e.value) WHEN 'string' THEN {{schema}}.said(e.value #>> '{{}}')
        ELSE {{schema}}.canonical(e.value, depth + 1) END, ',' ORDER BY e.place)
    INTO found FROM jsonb_array_elements(held) WITH ORDINALITY AS e(value, place);
    RETURN '[' || coalesce(found, '') || ']';
ELSIF kind = 'string' THEN RETURN {{schema}}.said(held #>> '{{}}');
ELSIF kind = 'number' AND NOT {{schema}}.whole(ltrim(held::text, '-')) THEN
    {_refuse("malformed", "no whole number")}
END IF;
RETURN held::text;
END""",
    ),
    # An argument in JSON, if it is the one text of an object.
    "parsed": (
        "given text, longest integer",
        "jsonb",
        "plpgsql IMMUTABLE",
        f"""
DECLARE held jsonb;
BEGIN
IF given IS NULL OR octet_length(given) > longest THEN {_refuse("malformed", "too long")} END IF;
held := given::jsonb;
IF jsonb_typeof(held) <> 'object' OR {{schema}}.canonical(held, 0) IS DISTINCT FROM given THEN
    {_refuse("malformed", "not canonical")}
END IF;
RETURN held;
END""",
    ),
    # Whether caps admit a total: rule "basic" or rule "zcdp" of `BudgetFilter`, in whole units.
    "admits": (
        "held jsonb, epsilon numeric, delta numeric, rho numeric, rho_delta numeric",
        "boolean",
        "plpgsql STABLE",
        f"""
DECLARE c {{schema}}.caps;
BEGIN
-- Caps of a form that these functions do not know are not half understood.
IF held - ARRAY['epsilon', 'delta'] <> '{{}}' THEN {_refuse("closed", "caps unknown")} END IF;
SELECT * INTO c FROM {{schema}}.caps AS k
WHERE k.epsilon = held ->> 'epsilon' AND k.delta = held ->> 'delta';
IF NOT FOUND THEN {_refuse("closed", "caps unknown")} END IF;
RETURN coalesce(epsilon <= c.most_epsilon AND delta <= c.most_delta, false)
    OR coalesce(rho <= c.most_rho AND rho_delta <= c.most_rho_delta, false);
END""",
    ),
    # A part of an amount, as Python writes the fraction.
    "part": (
        "amount text, begun bigint, parts bigint",
        "text",
        "sql IMMUTABLE",
        """
SELECT div(x.p, x.g)::text || CASE WHEN x.q = x.g THEN '' ELSE '/' || div(x.q, x.g) END FROM (
    SELECT a.p, a.q, gcd(a.p, a.q) AS g FROM (
        SELECT split_part(amount, '/', 1)::numeric * begun AS p,
            coalesce(nullif(split_part(amount, '/', 2), '')::numeric, 1) * parts AS q
    ) AS a
) AS x""",
    ),
    # What is unlocked of caps by an hour, in an account that was opened at another.
    "unlocked": (
        "caps jsonb, first text, at text",
        "jsonb",
        "plpgsql STABLE",
        f"""
DECLARE
    every text := caps -> 'unlock' ->> 'every';
    parts bigint := (caps -> 'unlock' ->> 'parts')::bigint;
    begun bigint;
BEGIN
IF caps - ARRAY['epsilon', 'delta', 'unlock'] <> '{{}}' THEN
    {_refuse("closed", "caps unknown")}
END IF;
begun := ({{schema}}.window_of(every, at) -> 'ranges' -> 0 ->> 0)::bigint
    - ({{schema}}.window_of(every, first) -> 'ranges' -> 0 ->> 0)::bigint;
begun := least(greatest(begun, 0) + 1, parts);
RETURN jsonb_build_object('epsilon', {{schema}}.part(caps ->> 'epsilon', begun, parts),
    'delta', {{schema}}.part(caps ->> 'delta', begun, parts));
END""",
    ),
    # The reservations that have not lapsed at an hour, and what was charged to each.
    "reserved": (
        "moment text",
        "TABLE (account text, caps jsonb, used numeric[])",
        "sql STABLE",
        """
SELECT t.account, x.budget::jsonb, ARRAY[nullif(y.spent ->> 'epsilon', 'infinite')::numeric,
    (y.spent ->> 'delta')::numeric, nullif(y.spent ->> 'rho', 'infinite')::numeric,
    (y.spent ->> 'rho_delta')::numeric]
FROM {schema}.touches AS t
JOIN {schema}.entries AS x ON x.number = t.entry
CROSS JOIN LATERAL (
    SELECT z.totals::jsonb -> t.account AS spent FROM {schema}.entries AS z
    WHERE z.number = (
        SELECT max(u.entry) FROM {schema}.touches AS u WHERE u.account = t.account
    )
) AS y
WHERE t.account > 'reservation:' || moment || ';' AND t.account < 'reservation;'
    AND t.sets_budget""",
    ),
    # What a reservation still holds: `ReservedQuota.left`.
    "left_of": (
        "caps jsonb, used numeric[]",
        "numeric[]",
        "sql IMMUTABLE",
        """
SELECT array_agg(greatest(w.amount - coalesce(used[w.place], w.amount), 0) ORDER BY w.place)
FROM (
    SELECT r.amount::numeric AS amount, r.place
    FROM jsonb_array_elements_text(caps -> 'reserve') WITH ORDINALITY AS r(amount, place)
) AS w""",
    ),
    # Refuses a charge that leaves too little of an account for what others have reserved: `room`.
    "check_room": (
        "one text, caps jsonb, total numeric[], state text, reads jsonb, moment text, mine text, "
        "added numeric[]",
        "void",
        "plpgsql STABLE",
        f"""
DECLARE
    r record;
    held numeric[];
    reached text[];
    whole jsonb := caps;
BEGIN
IF caps ? 'most' OR NOT EXISTS (
    SELECT FROM {{schema}}.reserved(moment) AS x WHERE x.caps -> 'accounts' ? one
) THEN RETURN; END IF;
FOR r IN SELECT x.account, x.caps, x.used FROM {{schema}}.reserved(moment) AS x
    WHERE x.caps -> 'accounts' ? one
LOOP
    held := r.used;
    IF r.account = mine THEN
        held := ARRAY[held[1] + added[1], held[2] + added[2], held[3] + added[3],
            held[4] + added[4]];
    END IF;
    held := {{schema}}.left_of(r.caps, held);
    total := ARRAY[total[1] + held[1], total[2] + held[2], total[3] + held[3], total[4] + held[4]];
    IF caps ? 'clock' THEN
        SELECT s.state INTO STRICT state FROM {{schema}}.spread(state::jsonb, reads, held[1],
            held[2], held[3], held[4]) AS s;
    ELSIF caps ? 'blocks' AND r.caps -> 'read' <> 'null' THEN
        SELECT s.state INTO STRICT state FROM {{schema}}.spread(state::jsonb, r.caps -> 'read',
            held[1], held[2], held[3], held[4]) AS s;
    END IF;
END LOOP;
IF caps ? 'blocks' THEN
    SELECT s.totals INTO STRICT reached
    FROM {{schema}}.spread(state::jsonb, reads, 0, 0, 0, 0) AS s;
    IF EXISTS (
        SELECT FROM unnest(reached) AS b WHERE NOT {{schema}}.admits(caps -> 'each',
            (b::jsonb ->> 0)::numeric, (b::jsonb ->> 1)::numeric,
            (b::jsonb ->> 2)::numeric, (b::jsonb ->> 3)::numeric)
    ) THEN {_refuse("budget", "a block is reserved")} END IF;
    whole := nullif(caps -> 'lifetime', 'null');
END IF;
IF whole IS NOT NULL AND NOT {{schema}}.admits(whole, total[1], total[2], total[3], total[4])
THEN {_refuse("budget", "an account is reserved")} END IF;
END""",
    ),
    # The reservation whose holder knows an id, if a charge of accounts and blocks may use it.
    "used_by": (
        "id text, accounts text[], read jsonb, moment text",
        "text",
        "plpgsql STABLE",
        f"""
DECLARE
    r record;
    holder text := encode(sha256(convert_to('dither reservation' || chr(10) || id, 'UTF8')), 'hex');
BEGIN
SELECT x.account, x.caps, x.caps -> 'read' AS kept INTO r FROM {{schema}}.reserved(moment) AS x
WHERE x.caps ->> 'holder' = holder;
IF NOT FOUND THEN {_refuse("reservation", "no open reservation")} END IF;
IF EXISTS (
    SELECT FROM unnest(accounts) AS a WHERE NOT r.caps -> 'accounts' ? a
) OR jsonb_array_length(r.caps -> 'accounts') <> cardinality(accounts)
    OR coalesce(read, 'null') <> r.kept AND (coalesce(read ? 'parallel', false)
        OR r.kept ? 'parallel')
    OR read IS NOT NULL AND (r.kept = 'null' OR NOT read -> 'named' <@ (r.kept -> 'named')
        OR EXISTS (
            SELECT FROM jsonb_array_elements(read -> 'ranges') AS a WHERE NOT EXISTS (
                SELECT FROM jsonb_array_elements(r.kept -> 'ranges') AS k
                WHERE coalesce((a ->> 0)::bigint >= (k ->> 0)::bigint, k ->> 0 IS NULL)
                    AND coalesce((a ->> 1)::bigint <= (k ->> 1)::bigint, k ->> 1 IS NULL)
            )
        ))
THEN {_refuse("reservation", "it is for something else")} END IF;
RETURN r.account;
END""",
    ),
    # Amounts of a block, more by a charge.
    "grown": (
        "held jsonb, epsilon numeric, delta numeric, rho numeric, rho_delta numeric",
        "text",
        "sql IMMUTABLE",
        """
SELECT '[' || coalesce(((held ->> 0)::numeric + epsilon)::text, 'null')
    || ',' || ((held ->> 1)::numeric + delta)::text
    || ',' || coalesce(((held ->> 2)::numeric + rho)::text, 'null')
    || ',' || ((held ->> 3)::numeric + rho_delta)::text || ']'""",
    ),
    # What each of a set of blocks bears of an amount: `share` of `_states`.
    "share": (
        "amount numeric, blocks jsonb",
        "numeric",
        "sql IMMUTABLE",
        """
SELECT CASE WHEN blocks ? 'parallel' THEN (
    SELECT div(amount + steps - 1, steps) FROM (
        SELECT jsonb_array_length(blocks -> 'named') + coalesce((
            SELECT sum((r ->> 1)::numeric - (r ->> 0)::numeric + 1)
            FROM jsonb_array_elements(blocks -> 'ranges') AS r
        ), 0) AS steps
    ) AS x
) ELSE amount END""",
    ),
    # What the blocks of an account have spent once each of a set was charged: `BlockState.plus`
    # and `BlockState.text`; and what those of the set have spent then.
    "spread": (
        "held jsonb, blocks jsonb, epsilon numeric, delta numeric, rho numeric, "
        "rho_delta numeric, OUT state text, OUT totals text[]",
        "",
        "sql STABLE",
        """
WITH step AS MATERIALIZED (
    SELECT {schema}.share(epsilon, blocks) AS e, {schema}.share(delta, blocks) AS d,
        {schema}.share(rho, blocks) AS r, {schema}.share(rho_delta, blocks) AS rd
), amount AS MATERIALIZED (
    SELECT a.place - 1 AS which, replace(a.value::text, ' ', '') AS was,
        {schema}.grown(a.value, step.e, step.d, step.r, step.rd) AS now
    FROM step, jsonb_array_elements(held -> 'amounts') WITH ORDINALITY AS a(value, place)
), stretch AS MATERIALIZED (
    SELECT (s.value #>> '{}')::bigint AS at, w.value::bigint AS which, s.place
    FROM jsonb_array_elements(held -> 'starts') WITH ORDINALITY AS s(value, place)
    JOIN jsonb_array_elements_text(held -> 'which') WITH ORDINALITY AS w(value, place)
    ON w.place = s.place
), edge AS (
    SELECT at, place, 0 AS turn FROM stretch
    UNION ALL SELECT (r ->> 0)::bigint, NULL, 1 FROM jsonb_array_elements(blocks -> 'ranges') AS r
    UNION ALL SELECT (r ->> 1)::bigint + 1, NULL, -1
    FROM jsonb_array_elements(blocks -> 'ranges') AS r WHERE r ->> 1 IS NOT NULL
), cut AS (
    SELECT at, max(place) AS place, sum(turn) AS turn FROM edge GROUP BY at
), run AS (
    SELECT at, max(place) OVER w AS place, sum(turn) OVER w > 0 AS inside
    FROM cut WINDOW w AS (ORDER BY at NULLS FIRST)
), after AS MATERIALIZED (
    SELECT r.at, r.inside, CASE WHEN r.inside THEN a.now ELSE a.was END AS spent
    FROM run AS r JOIN stretch AS s ON s.place = r.place JOIN amount AS a ON a.which = s.which
), kept AS MATERIALIZED (
    SELECT at, spent FROM (
        SELECT at, spent, lag(spent) OVER (ORDER BY at NULLS FIRST) AS before FROM after
    ) AS x WHERE before IS NULL OR before <> spent
), named AS MATERIALIZED (
    SELECT coalesce(o.key, n.key) COLLATE "C" AS name, n.key IS NOT NULL AS inside, CASE
        WHEN n.key IS NULL THEN a.was
        ELSE coalesce(a.now, {schema}.grown('[0,0,0,0]', step.e, step.d, step.r, step.rd))
        END AS spent
    FROM jsonb_each_text(held -> 'named') AS o(key, which)
    FULL JOIN jsonb_array_elements_text(blocks -> 'named') AS n(key) ON n.key = o.key
    LEFT JOIN amount AS a ON a.which = o.which::bigint CROSS JOIN step
), place AS MATERIALIZED (
    SELECT spent, row_number() OVER (ORDER BY min(at)) - 1 AS which FROM (
        SELECT spent, row_number() OVER (ORDER BY at NULLS FIRST) AS at FROM kept
        UNION ALL
        SELECT spent, (SELECT count(*) FROM kept) + row_number() OVER (ORDER BY name) FROM named
    ) AS x GROUP BY spent
)
SELECT '{"amounts":[' || (SELECT string_agg(spent, ',' ORDER BY which) FROM place)
    || '],"named":{' || coalesce((
        SELECT string_agg({schema}.said(n.name) || ':' || p.which, ',' ORDER BY n.name)
        FROM named AS n JOIN place AS p ON p.spent = n.spent
    ), '') || '},"starts":['
    || (SELECT string_agg(coalesce(at::text, 'null'), ',' ORDER BY at NULLS FIRST) FROM kept)
    || '],"which":[' || (
        SELECT string_agg(p.which::text, ',' ORDER BY k.at NULLS FIRST)
        FROM kept AS k JOIN place AS p ON p.spent = k.spent
    ) || ']}', ARRAY(
        SELECT spent FROM after WHERE inside UNION SELECT spent FROM named WHERE inside
    )""",
    ),
    # A set of blocks, if it is written in its one way: `BlockSet.to_dict`, canonical. It may have
    # many ranges, of which `parsed` would take long.
    "blocks_of": (
        "given text",
        "jsonb",
        "plpgsql IMMUTABLE",
        f"""
DECLARE held jsonb;
BEGIN
IF given IS NULL THEN RETURN NULL; END IF;
IF octet_length(given) > 10000000 THEN {_refuse("malformed", "too long")} END IF;
held := given::jsonb;
IF jsonb_typeof(held) <> 'object' OR jsonb_typeof(held -> 'ranges') IS DISTINCT FROM 'array'
    OR jsonb_typeof(held -> 'named') IS DISTINCT FROM 'array'
    OR held -> 'ranges' = '[]' AND held -> 'named' = '[]'
    OR EXISTS (
        SELECT FROM jsonb_array_elements(held -> 'ranges') AS r
        WHERE jsonb_typeof(r) <> 'array' OR jsonb_array_length(r) <> 2
            OR jsonb_typeof(r -> 0) NOT IN ('number', 'null')
            OR jsonb_typeof(r -> 1) NOT IN ('number', 'null')
            OR concat(r ->> 0, r ->> 1) !~ '^[-0-9]+$' AND (r ->> 0, r ->> 1) IS DISTINCT FROM
                (NULL, NULL)
            OR length(r ->> 0) > 15 OR length(r ->> 1) > 15
    )
    OR EXISTS (
        SELECT FROM jsonb_array_elements(held -> 'named') AS n
        WHERE jsonb_typeof(n) <> 'string' OR length(n #>> '{{}}') > 1000
    )
THEN {_refuse("malformed", "no set of blocks")} END IF;
IF given IS DISTINCT FROM '{{"named":[' || (
        SELECT coalesce(string_agg({{schema}}.said(n), ',' ORDER BY place), '')
        FROM jsonb_array_elements_text(held -> 'named') WITH ORDINALITY AS x(n, place)
    ) || (CASE WHEN held ? 'parallel' THEN '],"parallel":true' ELSE ']' END) || ',"ranges":[' || (
        SELECT coalesce(string_agg(
            '[' || coalesce(r ->> 0, 'null') || ',' || coalesce(r ->> 1, 'null') || ']', ','
            ORDER BY place), '')
        FROM jsonb_array_elements(held -> 'ranges') WITH ORDINALITY AS x(r, place)
    ) || ']}}'
    OR EXISTS (
        SELECT FROM (
            SELECT low, high, lag(high) OVER w AS before, row_number() OVER w = 1 AS first,
                lead(low) OVER w AS next, count(*) OVER () = row_number() OVER w AS last
            FROM (
                SELECT (r ->> 0)::bigint AS low, (r ->> 1)::bigint AS high, place
                FROM jsonb_array_elements(held -> 'ranges') WITH ORDINALITY AS x(r, place)
            ) AS x WINDOW w AS (ORDER BY place)
        ) AS x
        WHERE low > high OR low IS NULL AND NOT first OR high IS NULL AND NOT last
            OR low <= before + 1 OR held ? 'parallel' AND (low IS NULL OR high IS NULL)
    ) OR EXISTS (
        SELECT FROM (
            SELECT n, lag(n) OVER (ORDER BY place) AS before
            FROM jsonb_array_elements_text(held -> 'named') WITH ORDINALITY AS x(n, place)
        ) AS x
        WHERE before COLLATE "C" >= n COLLATE "C"
    )
THEN {_refuse("malformed", "no set of blocks")} END IF;
RETURN held;
END""",
    ),
    # The window of time that an entry's hour lies in, as a set of one block: `Calendar.block_of`.
    "window_of": (
        "every text, at text",
        "jsonb",
        "plpgsql IMMUTABLE",
        f"""
DECLARE
    day date := left(at, 10)::date;
    y bigint := extract(year FROM day);
    m bigint := extract(month FROM day);
    n bigint := CASE every WHEN 'year' THEN y WHEN 'quarter' THEN y * 4 + (m - 1) / 3
        WHEN 'month' THEN y * 12 + m - 1 WHEN 'week' THEN (day - make_date(1, 1, 1)) / 7
        WHEN 'day' THEN day - make_date(1, 1, 1) + 1 END;
BEGIN
IF n IS NULL THEN {_refuse("closed", "caps unknown")} END IF;
RETURN jsonb_build_object('named', jsonb_build_array(), 'ranges',
    jsonb_build_array(jsonb_build_array(n, n)));
END""",
    ),
    # Refuses tables that a charge may not be bound to: `ReadTables.bound`, and `Walk._bound`.
    "check_tables": (
        "earlier jsonb, later jsonb, promised jsonb",
        "void",
        "plpgsql IMMUTABLE",
        f"""
DECLARE t record; held jsonb;
BEGIN
IF EXISTS (
    SELECT FROM jsonb_each(earlier) AS b
    WHERE later -> b.key -> 'promise' IS DISTINCT FROM b.value -> 'promise'
        OR later -> b.key -> 'by' IS DISTINCT FROM b.value -> 'by'
) THEN {_refuse("promise", "a table is moved")} END IF;
FOR t IN
    SELECT l.key, l.value, coalesce(l.value -> 'sources', '{{}}') AS sources
    FROM jsonb_each(later) AS l WHERE earlier -> l.key IS DISTINCT FROM l.value
LOOP
    IF t.value -> 'promise' IS DISTINCT FROM promised THEN
        {_refuse("promise", "a table of another promise")}
    END IF;
    IF t.value - ARRAY['promise', 'by', 'sources'] <> '{{}}' OR length(t.key) NOT BETWEEN 1 AND 1000
        OR jsonb_typeof(t.value -> 'by') IS DISTINCT FROM 'string'
        OR length(t.value ->> 'by') NOT BETWEEN 1 AND 1000
        OR jsonb_typeof(t.sources) <> 'object' OR t.value -> 'sources' = '{{}}'
        OR EXISTS (
            SELECT FROM jsonb_each(t.sources) AS s WHERE jsonb_typeof(s.value) <> 'string'
                OR length(s.key) > 10000 OR length(s.value #>> '{{}}') > 10000
        )
        OR (SELECT count(*) FROM jsonb_object_keys(t.sources)) > {MOST_SOURCES + 1}
    THEN {_refuse("malformed", "no bound table")} END IF;
    held := coalesce(earlier -> t.key -> 'sources', '{{}}');
    -- What was known of it stays known, but for the oldest of very many.
    IF EXISTS (SELECT FROM jsonb_object_keys(held) AS k WHERE NOT t.sources ? k) AND NOT (
        t.sources ? '{MORE}'
        AND (SELECT count(*) FROM jsonb_object_keys(t.sources)) = {MOST_SOURCES + 1}
    ) THEN {_refuse("promise", "a source is forgotten")} END IF;
    IF EXISTS (
        SELECT FROM jsonb_each(earlier) AS o
        CROSS JOIN LATERAL jsonb_object_keys(coalesce(o.value -> 'sources', '{{}}')) AS k
        WHERE o.key <> t.key AND t.sources ? k AND NOT held ? k
            AND k NOT IN ('{MORE}', 'frame')
            AND (o.value -> 'promise', o.value -> 'by') IS DISTINCT FROM
                (t.value -> 'promise', t.value -> 'by')
    ) THEN {_refuse("promise", "rows of another account")} END IF;
END LOOP;
END""",
    ),
    # Refuses accounts that the caller may not charge, or may not leave out.
    "check_caller": (
        "accounts text[], unit text",
        "void",
        "plpgsql STABLE",
        f"""
DECLARE
    own text[];
    named text[];
    everybody boolean;
BEGIN
SELECT array_agg(a.quota), bool_or(a.quota = '*') INTO own, everybody
FROM {{schema}}.askers AS a WHERE a.role = session_user::text;
IF own IS NULL OR unit IS NULL THEN {_refuse("caller", "not an asker")} END IF;
IF ('dataset:' || unit) <> ALL (accounts) THEN
    {_refuse("caller", "the account of the data set is left out")}
END IF;
SELECT array_agg(regexp_replace(left(a, -length(unit) - 1), '@({_RULES})$', '')) INTO named
FROM unnest(accounts) AS a WHERE a <> 'dataset:' || unit;
IF EXISTS (
    SELECT FROM unnest(accounts) AS a
    WHERE a <> 'dataset:' || unit AND right(a, length(unit) + 1) <> ':' || unit
) OR EXISTS (
    SELECT FROM unnest(named) AS q WHERE q <> 'everybody' AND q !~ '^purpose:'
        AND q <> ALL (own) AND NOT (everybody AND q ~ '^(analyst|group):')
) THEN {_refuse("caller", "an account of somebody else")} END IF;
-- Whatever is open of the caller's, of what is named and of everybody's, with its rules.
IF EXISTS (
    SELECT FROM (
        SELECT q || r || ':' || unit AS account
        FROM unnest(own || named || ARRAY['everybody']) AS q,
            unnest('{{""}}'::text[] || string_to_array('@{_RULES.replace("|", ",@")}', ',')) AS r
        WHERE q <> '*'
    ) AS x
    WHERE x.account <> ALL (accounts) AND EXISTS (
        SELECT FROM {{schema}}.touches AS t WHERE t.account = x.account AND t.sets_budget
    )
) OR (
    NOT EXISTS (SELECT FROM unnest(accounts) AS a WHERE a ~ '^analyst:')
    AND EXISTS (
        SELECT FROM {{schema}}.touches AS t WHERE t.account >= 'analyst:' AND t.account < 'analyst;'
            AND t.sets_budget AND right(t.account, length(unit) + 1) = ':' || unit
    )
) THEN {_refuse("caller", "the quota of the caller is left out")} END IF;
END""",
    ),
    # Writes the next entry; the index, states and the head are its caller's.
    "append": (
        "e {schema}.entries",
        "text",
        "plpgsql VOLATILE",
        f"""
BEGIN
e.hash := encode(sha256(convert_to(
    '{DOMAINS[FORMAT].decode().rstrip()}' || chr(10) || '{{' || {_HASHED_TEXT} || '}}',
    'UTF8')), 'hex');
INSERT INTO {{schema}}.entries SELECT (e).*;
RETURN e.hash;
END""",
    ),
    # A charge; or, where an hour is given until which it is kept, the reservation of one.
    "enter": (
        "accounts text[], epsilon text, delta text, rho text, rho_delta text, promise text, "
        "tables text, note text, blocks text, token text, request text, reservation text, "
        'until text, holder text, OUT "number" bigint, OUT hash text',
        "",
        "plpgsql VOLATILE",
        f"""
#variable_conflict error
DECLARE
    before {{schema}}.entries;
    e {{schema}}.entries;
    setter {{schema}}.entries;
    promised jsonb := {{schema}}.parsed(promise, 10000);
    later jsonb;
    noted jsonb := {{schema}}.parsed(note, 10000000);
    read jsonb := {{schema}}.blocks_of(blocks);
    added numeric[];
    total numeric[];
    spent jsonb;
    caps jsonb;
    bounds jsonb;
    one text;
    last bigint;
    clock timestamptz := clock_timestamp();
    state text;
    held text;
    reached text[];
    reads jsonb;
    in_blocks boolean := false;
    totals text[] := '{{}}';
    hashes text[] := '{{}}';
    states text[] := '{{}}';
    whose text[] := '{{}}';
    keeps boolean := until IS NOT NULL;
    mine text;
    newest text;
BEGIN
SELECT h.count, h.hash INTO e.number, e.previous FROM {{schema}}.head AS h WHERE h.id = 1
FOR UPDATE;
SELECT * INTO STRICT before FROM {{schema}}.entries AS x WHERE x.number = e.number - 1;
IF before.hash IS DISTINCT FROM e.previous THEN
    {_refuse("malformed", "the chain is broken")}
END IF;
IF keeps THEN tables := before.tables; END IF;
later := {{schema}}.parsed(tables, 10000000);

IF NOT {{schema}}.whole(coalesce(nullif(epsilon, 'infinite'), '0'))
    OR NOT {{schema}}.whole(coalesce(nullif(rho, 'infinite'), '0'))
    OR NOT {{schema}}.whole(delta) OR NOT {{schema}}.whole(rho_delta)
    OR epsilon IS NULL OR rho IS NULL
    OR (epsilon = '0' AND delta = '0') OR (rho = '0' AND rho_delta = '0')
THEN {_refuse("malformed", "no charge")} END IF;
IF array_ndims(accounts) IS DISTINCT FROM 1 OR cardinality(accounts) > 100
    OR array_position(accounts, NULL) IS NOT NULL
    OR (SELECT count(DISTINCT a COLLATE "C") FROM unnest(accounts) AS a) <> cardinality(accounts)
    OR NOT keeps AND (
        (length(token) BETWEEN 1 AND 200 AND token !~ '[[:cntrl:]]' AND btrim(token) <> '')
            IS NOT TRUE
        OR request ~ '^[0-9a-f]{{16,128}}$' IS NOT TRUE
    )
THEN {_refuse("malformed", "no accounts, token or request")} END IF;
IF noted ->> 'role' IS DISTINCT FROM session_user::text THEN
    {_refuse("caller", "a note of somebody else")}
END IF;
IF EXISTS (SELECT FROM {{schema}}.entries AS x WHERE x.token = enter.token) THEN
    {_refuse("token", "a token that was used")}
END IF;
PERFORM {{schema}}.check_caller(accounts, promised ->> 'unit');
PERFORM {{schema}}.check_tables(before.tables::jsonb, later, promised);

-- The hour; as `dated` has it: no earlier than the newest date, which is that of no answer.
SELECT x.time INTO STRICT newest FROM {{schema}}.entries AS x WHERE x.kind <> 'answer'
ORDER BY x.number DESC LIMIT 1;
clock := greatest(clock, newest::timestamptz);
e.time := to_char(clock AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24":00:00+00:00"');
added := ARRAY[nullif(epsilon, 'infinite')::numeric, delta::numeric,
    nullif(rho, 'infinite')::numeric, rho_delta::numeric];
IF keeps THEN
    -- Somebody else's holder would find this one in place of theirs.
    IF until !~ '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9]{{2}}:00:00[+]00:00$'
        OR to_char(until::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24":00:00+00:00"')
            <> until
        OR until COLLATE "C" <= e.time COLLATE "C"
        OR until::timestamptz - e.time::timestamptz > make_interval(hours => 24 * {LONGEST_DAYS})
        OR holder ~ '^[0-9a-f]{{64}}$' IS NOT TRUE OR 'infinite' IN (epsilon, rho)
        OR EXISTS (
            SELECT FROM {{schema}}.reserved(e.time) AS r WHERE r.caps ->> 'holder' = holder
        )
    THEN {_refuse("malformed", "no reservation")} END IF;
ELSIF reservation IS NOT NULL THEN
    mine := {{schema}}.used_by(reservation, accounts, read, e.time);
    accounts := accounts || mine;
END IF;
FOR one IN SELECT a FROM unnest(accounts) AS a ORDER BY a COLLATE "C" LOOP
    SELECT max(t.entry) INTO last FROM {{schema}}.touches AS t WHERE t.account = one;
    IF last IS NULL THEN {_refuse("closed", "an account that is not open")} END IF;
    SELECT x.totals::jsonb -> one INTO STRICT spent FROM {{schema}}.entries AS x
    WHERE x.number = last;
    SELECT * INTO STRICT setter FROM {{schema}}.entries AS x WHERE x.number = (
        SELECT max(t.entry) FROM {{schema}}.touches AS t WHERE t.account = one AND t.sets_budget
    );
    IF setter.promise IS DISTINCT FROM promise THEN
        {_refuse("promise", "an account of another promise")}
    END IF;
    total := ARRAY[nullif(spent ->> 'epsilon', 'infinite')::numeric + added[1],
        (spent ->> 'delta')::numeric + added[2],
        nullif(spent ->> 'rho', 'infinite')::numeric + added[3],
        (spent ->> 'rho_delta')::numeric + added[4]];
    totals := totals || ({{schema}}.said(one) || ':{{"delta":"' || total[2] || '","epsilon":"'
        || coalesce(total[1]::text, 'infinite') || '","rho":"'
        || coalesce(total[3]::text, 'infinite') || '","rho_delta":"' || total[4] || '"}}');
    caps := setter.budget::jsonb;
    IF one = mine THEN
        -- What is kept for whoever uses it: `ReservedQuota.bears`.
        IF NOT (CASE WHEN total[1] IS NOT NULL THEN total[1] <= (caps -> 'reserve' ->> 0)::numeric
                AND total[2] <= (caps -> 'reserve' ->> 1)::numeric
            ELSE coalesce(total[3] <= (caps -> 'reserve' ->> 2)::numeric
                AND total[4] <= (caps -> 'reserve' ->> 3)::numeric, false) END)
        THEN {_refuse("budget", "a reservation cannot bear it")} END IF;
        CONTINUE;
    END IF;
    IF caps ? 'unlock' THEN
        SELECT {{schema}}.unlocked(caps, x.time, e.time) INTO STRICT caps
        FROM {{schema}}.entries AS x WHERE x.number = (
            SELECT min(t.entry) FROM {{schema}}.touches AS t WHERE t.account = one
        );
    END IF;
    bounds := caps;
    reads := NULL;
    state := NULL;
    IF caps ? 'most' THEN
        -- A quota of each question by itself.
        total := added;
        caps := CASE WHEN caps - 'most' = '{{}}' THEN caps -> 'most' ELSE caps END;
    ELSIF caps ? 'blocks' THEN
        IF caps - ARRAY['blocks', 'each', 'lifetime', 'clock'] <> '{{}}' THEN
            {_refuse("closed", "caps unknown")}
        END IF;
        reads := read;
        IF caps ? 'clock' THEN
            -- A quota for each window of time: the window that it is charged in.
            reads := {{schema}}.window_of(caps -> 'blocks' ->> 'every', e.time);
        ELSIF read IS NULL THEN {_refuse("malformed", "no blocks are named")}
        ELSE in_blocks := true; END IF;
        SELECT s.text INTO STRICT held FROM {{schema}}.states AS s WHERE s.account = one;
        SELECT s.state, s.totals INTO STRICT state, reached
        FROM {{schema}}.spread(held::jsonb, reads, added[1], added[2], added[3], added[4]) AS s;
        IF EXISTS (
            SELECT FROM unnest(reached) AS r WHERE NOT {{schema}}.admits(caps -> 'each',
                (r::jsonb ->> 0)::numeric, (r::jsonb ->> 1)::numeric,
                (r::jsonb ->> 2)::numeric, (r::jsonb ->> 3)::numeric)
        ) THEN {_refuse("budget", "a block cannot bear it")} END IF;
        whose := whose || one;
        states := states || state;
        hashes := hashes || ({{schema}}.said(one) || ':"'
            || encode(sha256(convert_to(state, 'UTF8')), 'hex') || '"');
        caps := nullif(caps -> 'lifetime', 'null');
    END IF;
    IF caps IS NOT NULL
        AND NOT {{schema}}.admits(caps, total[1], total[2], total[3], total[4])
    THEN {_refuse("budget", "an account cannot bear it")} END IF;
    PERFORM {{schema}}.check_room(one, bounds, total, state, reads, e.time, mine, added);
END LOOP;
IF read IS NOT NULL AND NOT in_blocks THEN {_refuse("malformed", "no account has blocks")} END IF;

e.promise := promise; e.tables := tables; e.note := note;
"number" := e.number;
IF keeps THEN
    one := 'reservation:' || until || ':' || e.number;
    e.kind := 'reserve';
    e.totals := '{{' || {{schema}}.said(one)
        || ':{{"delta":"0","epsilon":"0","rho":"0","rho_delta":"0"}}}}';
    e.budget := '{{"accounts":[' || (
            SELECT string_agg({{schema}}.said(a), ',' ORDER BY a COLLATE "C")
            FROM unnest(accounts) AS a
        ) || '],"holder":"' || holder || '","read":' || coalesce(blocks, 'null')
        || ',"reserve":["' || epsilon || '","' || delta || '","' || rho || '","' || rho_delta
        || '"],"until":"' || until || '"}}';
    hash := {{schema}}.append(e);
    INSERT INTO {{schema}}.touches VALUES (one, e.number, true);
    UPDATE {{schema}}.head AS h SET count = e.number + 1, hash = enter.hash WHERE h.id = 1;
    RETURN;
END IF;
e.kind := 'charge';
e.token := token; e.request := request;
e.epsilon := epsilon; e.delta := delta; e.rho := rho; e.rho_delta := rho_delta;
e.totals := '{{' || array_to_string(totals, ',') || '}}';
IF whose <> '{{}}' THEN
    e.blocks := '{{' || coalesce('"read":' || blocks || ',', '') || '"states":{{'
        || array_to_string(hashes, ',') || '}}}}';
END IF;
hash := {{schema}}.append(e);
INSERT INTO {{schema}}.touches SELECT a, e.number, false FROM unnest(accounts) AS a;
FOR i IN 1 .. cardinality(whose) LOOP
    UPDATE {{schema}}.states AS s SET entry = e.number, text = states[i] WHERE s.account = whose[i];
END LOOP;
UPDATE {{schema}}.head AS h SET count = e.number + 1, hash = enter.hash WHERE h.id = 1;
END""",
    ),
}
"""By name: arguments, result, language and body of what the functions call, as their owner."""

CALLED: dict[str, tuple[str, str, str, str]] = {
    "locked": (
        'OUT "count" bigint, OUT hash text',
        "",
        "plpgsql VOLATILE",
        """
BEGIN
SELECT h.count, h.hash INTO "count", hash FROM {schema}.head AS h WHERE h.id = 1 FOR UPDATE;
END""",
    ),
    "append_charge": (
        "accounts text[], epsilon text, delta text, rho text, rho_delta text, promise text, "
        "tables text, note text, blocks text, token text, request text, reservation text, "
        'OUT "number" bigint, OUT hash text',
        "",
        "plpgsql VOLATILE",
        """
BEGIN
SELECT f."number", f.hash INTO STRICT "number", hash
FROM {schema}.enter(accounts, epsilon, delta, rho, rho_delta, promise, tables, note, blocks, token,
    request, reservation, NULL, NULL) AS f;
END""",
    ),
    "append_reserve": (
        "accounts text[], epsilon text, delta text, rho text, rho_delta text, promise text, "
        "note text, blocks text, until text, holder text, "
        'OUT "number" bigint, OUT hash text',
        "",
        "plpgsql VOLATILE",
        f"""
BEGIN
IF until IS NULL THEN {_refuse("malformed", "no hour")} END IF;
SELECT f."number", f.hash INTO STRICT "number", hash
FROM {{schema}}.enter(accounts, epsilon, delta, rho, rho_delta, promise, NULL, note, blocks, NULL,
    NULL, NULL, until, holder) AS f;
END""",
    ),
    "append_answer": (
        'charge bigint, answer text, OUT "number" bigint, OUT hash text',
        "",
        "plpgsql VOLATILE",
        f"""
#variable_conflict error
DECLARE
    before {{schema}}.entries;
    asked {{schema}}.entries;
    e {{schema}}.entries;
BEGIN
SELECT h.count, h.hash INTO e.number, e.previous FROM {{schema}}.head AS h WHERE h.id = 1
FOR UPDATE;
SELECT * INTO STRICT before FROM {{schema}}.entries AS x WHERE x.number = e.number - 1;
SELECT * INTO asked FROM {{schema}}.entries AS x WHERE x.number = charge AND x.kind = 'charge';
IF NOT FOUND OR answer IS NULL OR before.hash IS DISTINCT FROM e.previous
    OR EXISTS (SELECT FROM {{schema}}.entries AS x WHERE x.answers = charge)
THEN {_refuse("malformed", "no charge that waits for an answer")} END IF;
IF asked.note::jsonb ->> 'role' IS DISTINCT FROM session_user::text THEN
    {_refuse("caller", "a charge of somebody else")}
END IF;
e.time := asked.time; e.kind := 'answer';
e.totals := '{{}}'; e.tables := before.tables; e.note := '{{}}';
e.answers := charge; e.answer := answer;
e.answer_digest := encode(sha256(convert_to(answer, 'UTF8')), 'hex');
"number" := e.number;
hash := {{schema}}.append(e);
UPDATE {{schema}}.head AS h SET count = e.number + 1, hash = append_answer.hash WHERE h.id = 1;
END""",
    ),
}
"""The same of those that a role may call that asks."""
