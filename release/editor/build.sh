#!/usr/bin/env bash
# Makes the page's SQL box: one file from the pinned packages, with the licences of what is in it.
set -euo pipefail
cd "$(dirname "$0")"
static=../../src/dither/service/page/static
npm ci --silent
# The page forbids style elements: its sheets are adopted, as they are in a shadow tree.
sed -i 's/!root\.head && root\.adoptedStyleSheets/root.adoptedStyleSheets/' node_modules/style-mod/src/style-mod.js
! grep -q 'root\.head &&' node_modules/style-mod/src/style-mod.js
npx esbuild editor.js --bundle --minify --format=iife --target=es2022 --legal-comments=none --outfile="$static/editor.js"
for folder in node_modules/@codemirror/* node_modules/@lezer/* node_modules/style-mod node_modules/w3c-keyname \
  node_modules/crelt node_modules/@marijn/*; do
  [ -e "$folder/LICENSE" ] && { printf '%s\n\n' "${folder#node_modules/}"; cat "$folder/LICENSE"; printf '\n'; }
done >"$static/editor.licence.txt"
rm -rf node_modules
