// Builds echarts.js, LICENSE and NOTICE beside the package.json in the current folder from node_modules.
import { readFileSync, writeFileSync } from "node:fs";
import { buildSync } from "esbuild";

const text = (path) => readFileSync(`node_modules/${path}`, "utf8").trim();
const version = (name) => JSON.parse(text(`${name}/package.json`)).version;
const zrender = text("zrender/LICENSE");
const d3 = text("echarts/licenses/LICENSE-d3");
const tslib = text("tslib/LICENSE.txt");

// a report travels alone, so what its licences want with every copy stands in the script itself
const banner = `/*!
Apache ECharts ${version("echarts")}, Apache License 2.0, https://www.apache.org/licenses/LICENSE-2.0
${text("echarts/NOTICE")}

With parts of d3:
${d3}

With ZRender ${version("zrender")}:
${zrender}

With tslib ${version("tslib")}:
${tslib}
*/`;

buildSync({
  entryPoints: ["entry.js"],
  outfile: "echarts.js",
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2020",
  charset: "ascii",
  legalComments: "none",
  banner: { js: banner },
  logLevel: "warning",
});

const parts = [text("echarts/LICENSE"), `d3\n\n${d3}`, `ZRender\n\n${zrender}`, `tslib\n\n${tslib}`];
writeFileSync("LICENSE", parts.join(`\n\n${"=".repeat(70)}\n\n`) + "\n");
writeFileSync("NOTICE", text("echarts/NOTICE") + "\n");
