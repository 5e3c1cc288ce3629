/** How a proxy in a process of its own reaches other hosts: with the certificate that its platform keeps on the disk. */
import { type Home, readHome, splitAddress, tlsTo } from "@hibernaut/cluster";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import { type ReachHost, SERVICES } from "./peer-lease.ts";

/** How often the files are read again: the platform renews the certificate months before it expires. */
const READ_MS = 3_600_000;

interface ReachOptions {
  dataDir: string;
  log: { warn(fields: object, message: string): void };
}

/** Reads the files of the host's cluster. Rejects if it is in none. */
export async function openReach({ dataDir, log }: ReachOptions): Promise<{ reach: ReachHost; close(): void }> {
  let home: Home = await readHome(dataDir);
  const read = async () => {
    try {
      home = await readHome(dataDir);
    } catch (error) {
      log.warn({ reason: messageOf(error) }, "the certificate of this host could not be read again");
    }
  };
  const timer = setInterval(() => background(read(), "reading how hosts are reached"), READ_MS).unref();
  return {
    reach({ host: name, peer, fingerprint }, kind) {
      const own = { authority: home.authority.certificate, identity: home.identity };
      const tls = tlsTo({ name, fingerprint }, SERVICES[kind], own);
      return { ...splitAddress(peer), tls };
    },
    close: () => clearInterval(timer),
  };
}
