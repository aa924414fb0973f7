// An editor of SQL in place of a text box, which keeps the text: what is typed here is what the form sends.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { SQLDialect, sql } from "@codemirror/lang-sql";
import { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightSpecialChars, keymap, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";

// Colours are the page's own variables, so that both themes are one.
const look = EditorView.theme({
  "&": { fontSize: ".95rem", backgroundColor: "var(--ground)", border: "1px solid var(--line)", borderRadius: "6px" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "1px" },
  ".cm-content": { fontFamily: "var(--mono)", minHeight: "7rem", caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-placeholder": { color: "var(--muted)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--accent-soft)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent-soft)", color: "var(--ink)" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal" },
  // The editor's own is a picture in the sheet, which the page forbids.
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "3px" },
  ".cm-diagnostic-error": { borderLeft: "4px solid var(--bad)" },
});
const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--two)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--four)" },
]);

// What questions may be written with, and no more: other words would be completed, and then refused.
const dialect = SQLDialect.define({
  keywords: "select from where group by having order limit offset as and or not in is null like between case when then else end "
    + "join left inner cross using on distinct filter within with asc desc grouping sets rollup cube options exists unnest",
  types: "integer bigint double real text varchar boolean date timestamp interval",
  doubleQuotedStrings: false, identifierQuotes: '"', caseInsensitiveIdentifiers: true,
});

// Text that replaces a selection: the browser would carry the colours over in an attribute, which the page forbids.
const replacing = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { from, to, empty } = view.state.selection.main;
    if (event.inputType !== "insertText" || event.isComposing || empty || !event.data) return false;
    event.preventDefault();
    const change = () => view.state.update(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    if (!view.state.facet(EditorView.inputHandler).some((one) => one(view, from, to, event.data, change))) view.dispatch(change());
    return true;
  },
});

// area: the text box. tables: { name: [{ label, detail }, ...] }. Gives what the page may do with it.
globalThis.ditherEditor = (area, { tables = {}, functions = [] } = {}) => {
  const language = new Compartment();
  const tell = () => area.dispatchEvent(new Event("input", { bubbles: true }));
  let held = tables;
  const known = (found) => sql({ dialect, schema: found, upperCaseKeywords: true });
  const called = functions.map((label) => ({ label, type: "function", apply: `${label}(` }));
  const view = new EditorView({
    state: EditorState.create({
      doc: area.value,
      extensions: [
        replacing, highlightSpecialChars(), history(), drawSelection(), bracketMatching(), closeBrackets(), autocompletion(),
        language.of(known(tables)),
        dialect.language.data.of({ autocomplete: (context) => {
          const word = context.matchBefore(/\w+/);
          if (!word || context.state.sliceDoc(word.from - 1, word.from) === ".") return null;
          // The columns of those tables that the question names; of all while it names none.
          const text = context.state.doc.toString().toLowerCase();
          const named = Object.keys(held).filter((one) => text.includes(one.toLowerCase()));
          const columns = (named.length ? named : Object.keys(held)).flatMap((one) => held[one]);
          const each = new Map(columns.map((one) => [one.label, { ...one, type: "property", boost: 2 }]));
          return { from: word.from, options: [...each.values(), ...called] };
        } }),
        // Tab leads on to the next field, as it does everywhere on the page.
        keymap.of([{ key: "Mod-Enter", run: () => false }, ...closeBracketsKeymap, ...defaultKeymap.filter((one) => one.key !== "Mod-Enter"), ...historyKeymap, ...completionKeymap]),
        look, syntaxHighlighting(colours), EditorView.lineWrapping,
        placeholder(area.placeholder),
        EditorView.contentAttributes.of({ "aria-label": area.getAttribute("aria-label") || area.labels[0]?.textContent || "SQL" }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          area.value = update.state.doc.toString();
          tell();
        }),
      ],
    }),
  });
  area.hidden = true;
  area.after(view.dom);
  return {
    view,
    set(text) { view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }); },
    know(found) { held = found; view.dispatch({ effects: language.reconfigure(known(found)) }); },
    // found: [{ from, to, message }], counted in characters.
    mark(found) {
      const end = view.state.doc.length;
      const held = found.map((one) => ({
        from: Math.min(one.from, end), to: Math.min(Math.max(one.to, one.from + 1), end), message: one.message, severity: "error",
      }));
      view.dispatch(setDiagnostics(view.state, held));
    },
  };
};
