/** `hibernaut serve`: runs the platform on this host. */
import { command } from "../command.ts";

type Urls = Record<"proxyUrl" | "sandboxUrl" | "flyUrl", string | undefined>;

export const serve = command({
  name: "serve",
  summary: "Run the platform on this host",
  description:
    "Runs until it is interrupted. The first start creates an admin token and stores it where the CLI finds it. Settings are environment variables: HIBERNAUT_DATA_DIR, HIBERNAUT_API_LISTEN, HIBERNAUT_PROXY_LISTEN and more.",
  options: [
    {
      flags: "--drop-snapshots",
      description: "start even if sleeping machines lose their memory, because QEMU, network or others have changed",
    },
  ],
  examples: [
    "hibernaut serve",
    "HIBERNAUT_DATA_DIR=/srv/hibernaut HIBERNAUT_API_LISTEN=127.0.0.1:4281 hibernaut serve",
  ],
  async run(context, _args, { dropSnapshots = false }) {
    process.setSourceMapsEnabled(true); // stacks in the log name the sources
    const [server, { readSettings }] = await Promise.all([
      import("@hibernaut/platform"),
      import("@hibernaut/settings"),
    ]);
    const settings = readSettings(process.env);
    const stopping = new AbortController();
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort());
    const onReady = ({ apiUrl, proxyUrl, sandboxUrl, flyUrl }: Record<"apiUrl", string> & Urls) => {
      const document = {
        api_url: apiUrl,
        proxy_url: proxyUrl ?? null,
        ...(sandboxUrl !== undefined && { sandbox_url: sandboxUrl }),
        ...(flyUrl !== undefined && { fly_url: flyUrl }),
        data_dir: settings.dataDir,
      };
      const named = { "apps at": proxyUrl, "sandboxes at": sandboxUrl, "Fly's clients at": flyUrl };
      const others = Object.entries(named).flatMap(([what, url]) => (url === undefined ? [] : [`${what} ${url}`]));
      const text = `Hibernaut answers at ${[apiUrl, ...others].join(", ")}. Stop it with Ctrl-C.`;
      process.stdout.write(`${context.json ? JSON.stringify(document) : text}\n`);
    };
    await server.serve({ settings, dropSnapshots, onReady, signal: stopping.signal });
    return { document: undefined, text: "" };
  },
});
