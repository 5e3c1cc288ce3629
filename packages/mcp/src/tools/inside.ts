/** Tools for what is inside a sandbox: commands, files, ports. */
import { ApiError, type FileEntry } from "@hibernaut/client";
import { given } from "@hibernaut/lib/given";
import { z } from "zod";
import { startOf, withoutEnd, withoutMiddle } from "../answer.ts";
import { COMMAND_TIMEOUT_S } from "../limits.ts";
import { sandbox, type Tool, tool } from "./define.ts";

const path = z.string().min(1).max(4096).startsWith("/").describe("An absolute path in the sandbox.");
const encoding = z.enum(["utf8", "base64"]).default("utf8");

const run = tool("run_command", {
  title: "Run a command",
  description:
    "Runs a command with /bin/sh in a sandbox, waits until it has ended, and returns its exit code and output. For programs that run on, such as servers, use `nohup ... > log 2>&1 &`.",
  input: {
    sandbox,
    command: z.string().min(1).max(32_768).describe("What /bin/sh runs."),
    timeout_seconds: z
      .number()
      .int()
      .min(1)
      .max(COMMAND_TIMEOUT_S.maximum)
      .default(COMMAND_TIMEOUT_S.otherwise)
      .describe("The command and its children are killed after this time."),
    workdir: z.string().max(4096).startsWith("/").optional().describe("Default: that of the image."),
    stdin: z.string().optional().describe("All of the command's input."),
    env: z.record(z.string(), z.string()).optional().describe("Environment variables, in addition."),
    user: z.string().max(256).optional().describe("Default: that of the image."),
  },
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
  async run({ sandbox: word, command, timeout_seconds: timeout, ...how }, { sandboxes, signal }) {
    const { handle } = await sandboxes.get(word, signal);
    const result = await handle.commands.run(command, { timeout, ...given(how), signal });
    const half = Math.floor(sandboxes.place.outputBytes / 2);
    return [
      result.timed_out
        ? `It was killed after ${timeout} s. Allow more with timeout_seconds, or run it in the background.`
        : `exit code ${result.exit_code}`,
      ...(result.truncated ? ["The platform kept the first MiB of each output; there was more."] : []),
      ...(result.stdout === "" ? [] : ["--- stdout", withoutMiddle(result.stdout, half)]),
      ...(result.stderr === "" ? [] : ["--- stderr", withoutMiddle(result.stderr, half)]),
    ].join("\n");
  },
});

const read = tool("read_file", {
  title: "Read a file",
  description: "Returns the contents of a file, or its beginning if it is long.",
  input: { sandbox, path, encoding: encoding.describe("base64 for files that are not text.") },
  annotations: { readOnlyHint: true, openWorldHint: false },
  async run({ sandbox: word, path: at, encoding: form }, { sandboxes, signal }) {
    const { handle } = await sandboxes.get(word, signal);
    const most = sandboxes.place.outputBytes;
    // Four characters of base64 are three bytes.
    const bytes = form === "base64" ? Math.floor(most / 4) * 3 : most;
    const { content, size_bytes: size, truncated } = await handle.files.readBeginning(at, bytes, { signal });
    if (form === "utf8" && content.includes(0)) {
      const message = `${at} is not text; it has ${size} bytes. Read it with encoding base64, or look at it with run_command.`;
      throw new ApiError({ code: "invalid_argument", message });
    }
    const text = form === "base64" ? content.toString("base64") : startOf(content, bytes);
    if (!truncated) return text;
    return `${text}\n[... the file has ${size} bytes, and only the first ${content.length} are shown. See others with run_command: tail -c +${content.length + 1} ...]`;
  },
});

const write = tool("write_file", {
  title: "Write a file",
  description:
    "Makes a file with these contents, and the directories that lead to it. A file that is there is replaced: whole, or not at all.",
  input: { sandbox, path, content: z.string(), encoding: encoding.describe("How `content` is written.") },
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  async run({ sandbox: word, path: at, content, encoding: form }, { sandboxes, signal }) {
    const { handle } = await sandboxes.get(word, signal);
    const bytes = Buffer.from(content, form);
    await handle.files.write(at, bytes, { signal });
    return `Wrote ${bytes.length} bytes to ${at}.`;
  },
});

const list = tool("list_files", {
  title: "List a directory",
  description: "Lists what is in a directory: kind, size in bytes, time of the last change, path.",
  input: {
    sandbox,
    path,
    depth: z.number().int().min(1).max(32).default(1).describe("How many levels of directories."),
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
  async run({ sandbox: word, path: at, depth }, { sandboxes, signal }) {
    const { handle } = await sandboxes.get(word, signal);
    const { entries, truncated } = await handle.files.list(at, { depth, signal });
    if (entries.length === 0) return `${at} is empty.`;
    const lines = entries.map(entryLine);
    if (truncated) lines.push("[... there are more. List a directory below, or use a smaller depth ...]");
    return withoutEnd(lines, sandboxes.place.outputBytes, "List a directory below, or use a smaller depth");
  },
});

function entryLine({ kind, size_bytes: size, modified_at: at, path: where, target }: FileEntry): string {
  return `${kind}  ${size}  ${at}  ${where}${target === null ? "" : ` -> ${target}`}`;
}

const expose = tool("expose_port", {
  title: "Get the URL of a port",
  description:
    "Returns the URL at which programs outside reach a port of a sandbox, on which a program in it listens. Anyone who knows the URL can use it.",
  input: { sandbox, port: z.number().int().min(1).max(65_535) },
  annotations: { readOnlyHint: true, openWorldHint: false },
  async run({ sandbox: word, port }, { sandboxes, signal }) {
    const { machine } = await sandboxes.get(word, signal);
    const { sandbox_port_url: pattern } = await sandboxes.place.client.getApp(machine.app_name, { signal });
    if (pattern === undefined) {
      const message =
        "Ports of sandboxes answer nowhere, because sandboxes are off. The operator of the platform has to set HIBERNAUT_SANDBOX_LISTEN; until then, use run_command with curl inside the sandbox.";
      throw new ApiError({ code: "failed_precondition", message });
    }
    return pattern.replace("{port}", String(port)).replace("{id}", machine.id);
  },
});

/** In the order in which a program needs them. */
export const insideTools: readonly Tool[] = [run, read, write, list, expose];
