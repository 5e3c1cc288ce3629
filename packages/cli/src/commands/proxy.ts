/** `hibernaut proxy`: runs a proxy in a separate process. */
import { command } from "../command.ts";

export const proxy = command({
  name: "proxy",
  summary: "Run a proxy in a separate process",
  description:
    "Needs a platform with the same HIBERNAUT_DATA_DIR that was started with HIBERNAUT_PROXY=outside. Several proxies can run at once and share HIBERNAUT_PROXY_LISTEN. They keep serving requests to running machines while the platform restarts.",
  examples: ["HIBERNAUT_PROXY=outside hibernaut serve", "hibernaut proxy"],
  async run(context) {
    process.setSourceMapsEnabled(true); // stacks in the log name the sources
    const [{ runProxyProcess }, { VERSION: version }, { readSettings }] = await Promise.all([
      import("@hibernaut/proxy/run-proxy-process"),
      import("@hibernaut/platform/version.ts"),
      import("@hibernaut/settings"),
    ]);
    const stopping = new AbortController();
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort());
    const onReady = ({ url }: { url: string }) => {
      const text = `Apps answer at ${url}. Stop it with Ctrl-C.`;
      process.stdout.write(`${context.json ? JSON.stringify({ proxy_url: url }) : text}\n`);
    };
    await runProxyProcess({ version, settings: readSettings(process.env), onReady, signal: stopping.signal });
    return { document: undefined, text: "" };
  },
});
