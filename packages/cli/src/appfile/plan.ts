/** What `hibernaut launch` guesses from a directory; the user can see and change every guess. Pure. */
import { type Builder, type Detected, detect } from "../build/detect.ts";
import { DEFAULT_CPUS, DEFAULT_MEMORY_MB } from "../defaults.ts";
import type { Folder } from "./folder.ts";
import { DEFAULT_PORT } from "./services.ts";

/** A directory with at least {@link LEAST_ROOT_FOLDERS} of these is a root file system. */
const ROOT_FOLDERS = ["bin", "etc", "lib", "root", "sbin", "usr", "var"];
const LEAST_ROOT_FOLDERS = 4;

/** The guesses that an app file is written from. */
export interface AppPlan {
  kind: "image" | Builder | "rootfs" | "unknown";
  app: string;
  image: string | undefined;
  /** How the image is built, if there is none. */
  build: Detected | undefined;
  port: number;
  /** Where the port comes from: the end of the sentence "The port ...". Undefined when nothing says it. */
  portReason: string | undefined;
  /** Whether to tell the app its port in the variable PORT. */
  setPort: boolean;
  memoryMb: number;
  cpus: number;
}

/** What the options of the command say in place of guesses. */
interface LaunchOptions {
  image?: string;
  name?: string;
  internalPort?: number;
  vmMemory?: number;
  vmCpus?: number;
}

/** Makes the guesses. */
export function planLaunch(
  folder: Folder,
  { image, name, internalPort, vmMemory = DEFAULT_MEMORY_MB, vmCpus = DEFAULT_CPUS }: LaunchOptions,
): AppPlan {
  const detected = detect(folder);
  const kind = kindOf(folder, image, detected);
  const packageName = folder.packageJson?.name;
  const found =
    internalPort === undefined ? guessPort(folder) : { port: internalPort, reason: "is from --internal-port" };
  return {
    kind,
    app: name ?? appName(typeof packageName === "string" && packageName !== "" ? packageName : folder.name),
    image: image ?? folder.images[0],
    build: image === undefined && folder.images.length === 0 ? detected : undefined,
    port: found?.port ?? DEFAULT_PORT,
    portReason: found?.reason,
    setPort: folder.packageJson !== undefined || ["node", "static", "python", "go"].includes(kind),
    memoryMb: vmMemory,
    cpus: vmCpus,
  };
}

/** The closest name that the platform accepts. */
export function appName(text: string): string {
  const name = text
    .toLowerCase()
    .replace(/^@[^/]*\//, "")
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 63)
    .replace(/^-+|-+$/g, "");
  return name === "" ? "app" : name;
}

function kindOf(folder: Folder, image: string | undefined, detected: Detected | undefined): AppPlan["kind"] {
  if (image !== undefined) return "image";
  if (detected !== undefined && detected.builder !== "static") return detected.builder;
  if (folder.images.length > 0) return "image";
  const roots = ROOT_FOLDERS.filter((name) => folder.entries.includes(name));
  return detected?.builder ?? (roots.length >= LEAST_ROOT_FOLDERS ? "rootfs" : "unknown");
}

function guessPort({ dockerfile = "", packageJson }: Folder): { port: number; reason: string } | undefined {
  // Within the line: where spaces may be newlines, each empty line would be followed to the end of the file.
  const exposed = [...dockerfile.matchAll(/^[ \t]*EXPOSE[ \t]+(\d{1,5})/gim)].at(-1)?.[1];
  if (isPort(exposed)) return { port: Number(exposed), reason: "is from EXPOSE in the Dockerfile" };
  const declared = [...dockerfile.matchAll(/^[ \t]*ENV[ \t]+(?:.*\s)?PORT[= ]"?(\d{1,5})/gm)].at(-1)?.[1];
  if (isPort(declared)) return { port: Number(declared), reason: "is from ENV PORT in the Dockerfile" };
  const { start, dev } = (packageJson?.scripts ?? {}) as { start?: unknown; dev?: unknown };
  for (const [name, script] of Object.entries({ start, dev })) {
    const [, port] = /(?:\bPORT=|--port[= ]|\s-p[= ]?)(\d{1,5})\b/.exec(String(script ?? "")) ?? [];
    if (isPort(port)) return { port: Number(port), reason: `is from the script \`${name}\` in package.json` };
  }
  return undefined;
}

function isPort(text: string | undefined): text is string {
  return text !== undefined && Number(text) >= 1 && Number(text) <= 65_535;
}
