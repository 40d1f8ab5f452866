// @vitest-environment node
/** Every text that people see stands in `src/texts`, so that a translation is data only. */
import { parseSync } from "vite";
import { expect, test } from "vitest";

/** A node of the syntax tree, as the walk below needs it. */
type Node = { type: string; start: number } & Record<string, unknown>;

/** Attributes, properties and keys whose values people read or hear. */
const SHOWN = new Set(
  "alt aria-label aria-description help hint label placeholder textContent title word".split(" "),
);
/** Attributes and properties that only code and style sheets read, however much they look like words. */
const UNSEEN = new Set("class className buttonClass d rel transform viewBox".split(" "));
/** Which argument of a function people see. */
const TOLD: Record<string, number> = { toast: 0, notify: 0, setProblem: 0, element: 2 };
/** Functions whose texts are names: of events, headers, elements, media, words to look for. */
const NAMES = new Set(
  "closest element get has includes insertAdjacentHTML matches matchMedia open querySelector querySelectorAll set split".split(
    " ",
  ),
);
const LETTER = /\p{L}/u;
/** Several words, or one that begins as a sentence does. */
const PROSE = /\p{L}[\p{L}’',.:;…)]* +\p{L}|^\s*\p{Lu}\p{Ll}/u;

function bareTexts(name: string, source: string): string[] {
  const found: string[] = [];
  const report = (node: Node, text: string) => {
    const line = source.slice(0, node.start).split("\n").length;
    found.push(`${name}:${line} ${text.trim().replace(/\s+/g, " ")}`);
  };
  const check = (node: Node, text: string, isShown: boolean) => {
    const words = text.replace(/<[^>]*>|[\w-]+="[^"]*"/g, "");
    if ((isShown ? LETTER : PROSE).test(words)) report(node, text);
  };
  const nameOf = (node: unknown): string => {
    const { type, name, property, value } = (node ?? {}) as Node;
    if (type === "MemberExpression") return nameOf(property);
    return String(name ?? value ?? "");
  };
  const walkAll = (nodes: unknown, isShown = false) => {
    for (const node of nodes as (Node | null)[]) if (node) walk(node, isShown);
  };
  const isText = (node: Node) => node.type === "Literal" || node.type === "TemplateLiteral";

  function walk(node: Node, isShown = false): void {
    switch (node.type) {
      case "Literal":
        if (typeof node.value === "string") check(node, node.value, isShown);
        return;
      case "TemplateLiteral": {
        const pieces = (node.quasis as { value: { cooked: string } }[]).map((piece) => piece.value.cooked);
        // What is filled in counts as a word beside other words, and as nothing where it stands alone.
        const filling = isShown || !LETTER.test(pieces.join("")) ? "" : "x";
        check(node, pieces.join(filling), isShown);
        walkAll(node.expressions, isShown);
        return;
      }
      case "JSXText":
        check(node, String(node.value), true);
        return;
      case "JSXAttribute": {
        const attribute = nameOf(node.name);
        if (!UNSEEN.has(attribute) && node.value) walk(node.value as Node, SHOWN.has(attribute));
        return;
      }
      case "JSXElement":
      case "JSXFragment":
        walkAll((node.openingElement as { attributes?: Node[] } | undefined)?.attributes ?? []);
        walkAll(node.children, true);
        return;
      case "JSXExpressionContainer":
        walk(node.expression as Node, isShown);
        return;
      case "ConditionalExpression":
        walk(node.test as Node);
        walkAll([node.consequent, node.alternate], isShown);
        return;
      case "LogicalExpression":
        walkAll([node.left, node.right], isShown);
        return;
      case "BinaryExpression":
        // What is compared with is a name.
        for (const side of [node.left, node.right] as Node[]) {
          if (node.operator === "+" || !isText(side)) walk(side, isShown && node.operator === "+");
        }
        return;
      case "ArrayExpression":
        walkAll(node.elements, isShown);
        return;
      case "AssignmentExpression": {
        const target = nameOf(node.left);
        if (!UNSEEN.has(target)) walk(node.right as Node, SHOWN.has(target));
        return;
      }
      case "Property":
        walk(node.value as Node, SHOWN.has(nameOf(node.key)));
        return;
      case "CallExpression":
      case "NewExpression": {
        const callee = nameOf(node.callee);
        if (callee !== "split") walk(node.callee as Node);
        for (const [at, argument] of (node.arguments as Node[]).entries()) {
          const isTold = TOLD[callee] === at;
          if (isTold || !NAMES.has(callee) || !isText(argument)) walk(argument, isTold);
        }
        return;
      }
      case "MemberExpression":
        walk(node.object as Node);
        return;
      case "SwitchCase":
        walkAll(node.consequent);
        return;
      case "ImportDeclaration":
      case "ImportExpression":
        return;
    }
    for (const [key, value] of Object.entries(node)) {
      if (typeof value !== "object" || value === null) continue;
      if (/^(type.*|returnType|superTypeArguments|implements)$/.test(key)) continue;
      for (const child of Array.isArray(value) ? value : [value]) {
        if (child?.type && !/^TS(?!As|Satisfies|NonNull)/.test(child.type)) walk(child as Node);
      }
    }
  }

  const { program, errors } = parseSync(name, source);
  expect(errors).toEqual([]);
  walk(program as unknown as Node);
  return found;
}

const sources = import.meta.glob<string>(["../src/**/*.{ts,tsx}", "!../src/texts/**"], {
  query: "?raw",
  import: "default",
  eager: true,
});

test("no text that people see stands outside of src/texts", () => {
  expect(Object.keys(sources).length).toBeGreaterThan(50);
  const found = Object.entries(sources).flatMap(([name, source]) => bareTexts(name, source));
  expect(found).toEqual([]);
});

test.each([
  ["<p>Hello</p>", 1],
  ['<p title="Hello" />', 1],
  ["<p aria-label={`${count} files`} />", 1],
  ['<p>{isOn ? "on" : <b class="x y">off</b>}</p>', 2],
  ['toast("gone")', 1],
  ['throw new Problem(0, "offline", "The server is away.")', 1],
  ['button.textContent = isOn ? "Pause" : "Go on"', 2],
  ['const faces = { running: { word: "running" } }', 1],
  ["const made = `by ${name}`", 1],
  ['element("p", "quiet text", "Nothing")', 1],
  ['<p class="quiet text" data-tone="ok">{t.hello} · {t.files(count)}</p>', 0],
  ['if (event.key === "Escape") box.querySelector("ul li")', 0],
  ['headers.set("Content-Type", "application/json")', 0],
  ['const state: "New here" = read("new")', 0],
])("the check of texts reads %s", (source, count) => {
  expect(bareTexts("probe.tsx", source)).toHaveLength(count);
});
