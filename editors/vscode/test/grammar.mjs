// The grammars know the words of the texts that they are for: each word here has a scope that begins as it says.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const oniguruma = require("vscode-oniguruma");
const textmate = require("vscode-textmate");

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const wasm = readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
const files = { "source.tilewright": "schedule", "source.tilewright.program": "program" };
const registry = new textmate.Registry({
    onigLib: Promise.resolve({
        createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
        createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async (scope) => {
        const path = here(`../syntaxes/${files[scope]}.tmLanguage.json`);
        return textmate.parseRawGrammar(readFileSync(path, "utf8"), path);
    },
});

const cases = [
    ["source.tilewright.program", "func matmul(n)", { func: "keyword", matmul: "entity" }],
    ["source.tilewright.program", "  in A: f32[n, 64] @shared", { in: "storage", A: "variable", f32: "storage", 64: "constant", "@shared": "storage" }],
    ["source.tilewright.program", "  for io in 0..n floordiv 8 @blockIdx.x // rows", { for: "keyword", io: "variable", floordiv: "keyword", "@blockIdx.x": "storage", "// rows": "comment" }],
    ["source.tilewright.program", "      block C(vi: n = io*8 + ii, vk: reduce 64 = k) if io*8 + ii < n", { block: "keyword", C: "entity", reduce: "keyword", if: "keyword" }],
    ["source.tilewright.program", "          C[vi, vj] = exp(0.5f32)", { exp: "support", "0.5f32": "constant" }],
    ["source.tilewright.program", "    for k in 0..64 #{software_pipeline_stage: {A: 0}, note: \"text\"}", { software_pipeline_stage: "entity", "\"text\"": "string" }],
    ["source.tilewright.program", "    barrier role", { barrier: "keyword" }],
    ["source.tilewright", "    split(loop: \"k\", into: {\"ko\": None, \"ki\": 16}), // in tiles", { split: "entity", loop: "variable", "\"ko\"": "entity", None: "constant", 16: "constant", "// in tiles": "comment" }],
    ["source.tilewright", "schedule(workload: \"matmul\")", { schedule: "keyword", matmul: "string" }],
    ["source.tilewright", "unroll(loop: \"{it}_x\")", { "{it}": "variable" }],
];

let wrong = 0;
for (const [scope, line, words] of cases) {
    const grammar = await registry.loadGrammar(scope);
    const tokens = grammar.tokenizeLine(line, textmate.INITIAL).tokens;
    for (const [word, wanted] of Object.entries(words)) {
        const at = line.search(new RegExp(`(?<![A-Za-z0-9_])${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`));
        const token = tokens.find((it) => it.startIndex <= at && at < it.endIndex);
        const scopes = token?.scopes.slice(1) ?? [];
        if (!scopes.some((it) => it.startsWith(wanted))) {
            console.error(`${line}: \`${word}\` is ${scopes}, not ${wanted}`);
            wrong += 1;
        }
    }
}
console.log(wrong === 0 ? "the grammars know their words" : `${wrong} words are wrong`);
process.exit(wrong === 0 ? 0 : 1);
