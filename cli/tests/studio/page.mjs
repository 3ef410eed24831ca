// The page of `tilewright studio` in a headless browser: somebody types an error, sees it, mends it, and sees the timeline change.
//
//     npm test                    with the tool that `cargo test` has built, or TILEWRIGHT=path/to/tilewright
//     npm test -- --shots FOLDER  with pictures of the page
//
// Nothing here sleeps: each step waits for what the page shows.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const tool = process.env.TILEWRIGHT ?? join(here, "../../../target/debug/tilewright");
const executablePath = process.env.CHROMIUM ?? execFileSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).trim();
const shots = process.argv.includes("--shots") ? process.argv[process.argv.indexOf("--shots") + 1] : null;
const TIMEOUT = 60_000;

const folder = mkdtempSync(join(tmpdir(), "tilewright-studio-"));
const script = join(folder, "pipeline.ron");
copyFileSync(join(here, "pipeline.ron"), script);
const legal = readFileSync(script, "utf8");
// As editors do it: the new text beside the file, and then in its place.
const save = (text) => {
  writeFileSync(script + "~", text);
  renameSync(script + "~", script);
};

const studio = spawn(tool, ["studio", "pipeline.ron", "--port", "0"], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
const ended = new Promise((resolve) => studio.on("exit", (code) => resolve(code)));
const line = await new Promise((resolve) => createInterface(studio.stdout).once("line", resolve));
const url = line.match(/http:\/\/127\.0\.0\.1:\d+\//)[0];

const browser = await chromium.launch({
  executablePath,
  args: [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
const open = async (options) => {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(TIMEOUT);
  const strange = [];
  page.on("pageerror", (err) => strange.push(String(err)));
  page.on("console", (it) => it.type() === "error" && strange.push(it.text()));
  page.on("request", (it) => it.url().startsWith(url) || it.url().startsWith("data:") || strange.push("asks for " + it.url()));
  await page.goto(url);
  return { page, strange };
};
const shot = async (page, name) => {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, name + ".png") });
};

let code;
try {
  const { page, strange } = await open({ viewport: { width: 1440, height: 900 }, colorScheme: "light" });
  const state = (word) => page.waitForSelector(`#state[data-state="${word}"]`);
  const text = (selector) => page.locator(selector).innerText();
  const tab = (id) => page.locator("#tab-" + id).click();

  // What is there at first: steps with extents, the loop nest after each, every form of the program.
  await state("legal");
  await page.waitForSelector("#steps button >> nth=19");
  assert.match(await text("#steps"), /split.*\n?.*by: 4/);
  await page.locator("#steps button").nth(9).focus();
  await page.keyboard.press("ArrowDown");
  await page.waitForSelector("#panel-step h2:has-text('Step 10: compute_at')");
  assert.match(await text("#panel-step"), /for ko in 0\.\.4/);
  assert.ok((await page.locator("#panel-step .diff .add").count()) > 0, "a step shows what it changes");
  await shot(page, "step-light");
  await page.keyboard.press("Tab");
  await tab("kernel");
  assert.ok((await page.locator("#panel-kernel .l.on").count()) > 0, "the lines of a step are marked");
  await shot(page, "kernel-light");
  await tab("source");
  assert.match(await text("#panel-source"), /sha256 [0-9a-f]{64}[\s\S]*__global__/);
  await shot(page, "source-light");
  await tab("timeline");
  await page.waitForSelector("#panel-timeline svg");
  assert.match(await text("#panel-timeline"), /A_shared +shared +2 +2 /);
  await shot(page, "timeline-light");
  await tab("resources");
  await page.waitForSelector("#panel-resources table");
  await shot(page, "resources-light");
  await tab("virtual-gpu");
  await page.waitForFunction(() => document.querySelector("#panel-virtual-gpu").innerText.includes("findings   none"));
  await shot(page, "virtual-gpu-light");

  // Somebody types an error: it stands at its line, and what was known stays, as of an earlier version.
  save(legal.replace('loop: "ko", order: ["A_shared"', 'loop: "kp", order: ["A_shared"'));
  await state("wrong");
  assert.match(await text("#script .finding"), /error\[TW1002\][\s\S]*did you mean `ko`/);
  assert.equal(await page.locator("#script .finding").evaluate((it) => it.previousElementSibling.id), "s23");
  assert.ok(await page.locator("#panel-timeline.stale svg").count(), "the last good timeline stays");
  await page.waitForFunction(() => document.querySelectorAll("#steps button").length === 18);
  await tab("timeline");
  await shot(page, "error-light");

  // The file goes away and comes back.
  rmSync(script);
  await state("missing");
  await shot(page, "missing-light");

  // Mended, with another stage: the timeline is another, and what changed is told.
  save(legal.replace('"C": 1', '"C": 2'));
  await state("legal");
  await page.waitForFunction(() => /A_shared +shared +3 +3 /.test(document.querySelector("#panel-timeline").innerText));
  await page.waitForSelector("#panel-timeline:not(.stale)");
  await page.waitForFunction(() => document.querySelectorAll('[role="tab"] .dot:not([hidden])').length >= 4);
  await shot(page, "mended-light");
  await tab("changes");
  await page.waitForSelector('#panel-changes [data-of="timeline"]');
  await page.waitForSelector('#panel-changes [data-of="resources"]');
  assert.match(await text('#panel-changes [data-of="script"]'), /"C": 1[\s\S]*"C": 2/);
  await shot(page, "changes-light");

  const { page: dark, strange: others } = await open({ viewport: { width: 1440, height: 900 }, colorScheme: "dark" });
  await dark.waitForSelector('#state[data-state="legal"]');
  for (const id of ["timeline", "changes", "kernel", "resources", "step"]) {
    await dark.evaluate((id) => (location.hash = id), id);
    await dark.waitForSelector(`#panel-${id} .body > *`);
    await shot(dark, id + "-dark");
  }
  const { page: narrow, strange: more } = await open({ viewport: { width: 500, height: 900 }, colorScheme: "light" });
  await narrow.waitForSelector("#panel-step .body > *");
  const wide = await narrow.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 500, `a narrow page is ${wide} pixels wide`);
  await shot(narrow, "narrow-top");
  await narrow.locator("#tabs").scrollIntoViewIfNeeded();
  await narrow.locator("#tab-timeline").click();
  await narrow.locator("#tabs").evaluate((it) => it.scrollIntoView());
  await shot(narrow, "narrow-timeline");
  save(legal.replace("split(", "splt("));
  await narrow.waitForSelector("#script .finding");
  await narrow.evaluate(() => scrollTo(0, 0));
  await shot(narrow, "narrow-error");
  assert.deepEqual([...strange, ...others, ...more], []);

  // Without the studio the page says so.
  studio.kill("SIGINT");
  code = await ended;
  await page.waitForSelector("#away:not([hidden])");
} finally {
  studio.kill("SIGKILL");
  await browser.close();
  rmSync(folder, { recursive: true });
}
assert.equal(code, 0, "Ctrl-C ends it cleanly");
console.log("the page shows an error, its end, and what changed");
