/** Starts the service, and stops it on SIGTERM and SIGINT: open requests finish, then the database is closed. */
import { pino } from "pino";
import { buildApp } from "./api/app.ts";
import { describeDatabase, openStorage } from "./database.ts";
import { readSettings, SettingError, type Settings } from "./settings.ts";
import { DatabaseUnavailableError } from "./storage.ts";

/** How long open requests may take when the service stops. Supervisors wait for 10 s or more. */
const STOP_TIMEOUT_MS = 8000;
const SWEEP_INTERVAL_MS = 50;

const STOP_SIGNALS = ["SIGTERM", "SIGINT"] as const;
const exitAtOnce = () => process.exit(0);

async function main(settings: Settings): Promise<void> {
  const timestamp = pino.stdTimeFunctions.isoTime;
  const log = pino({ level: settings.logLevel, base: null, timestamp });
  // While the service waits for the database, there is nothing to finish. Without a handler, PID 1 would ignore the signal.
  for (const signal of STOP_SIGNALS) process.on(signal, exitAtOnce);
  const storage = await openStorage(
    settings,
    (error) => log.warn({ err: error }, "connections were dropped"),
    (why) => log.warn(why),
  );
  const app = await buildApp({ storage, logger: log });

  let stopping = false;
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    // A second signal ends the process at once.
    if (stopping) process.exit(1);
    stopping = true;
    log.info({ signal }, "stopping");
    const late = setTimeout(() => {
      log.warn("open requests did not finish in time and were cut off");
      app.server.closeAllConnections();
    }, STOP_TIMEOUT_MS);
    // A connection whose last request finishes now was promised to stay open, but it is idle and can be closed.
    const sweep = setInterval(() => app.server.closeIdleConnections(), SWEEP_INTERVAL_MS);
    await app.close();
    clearInterval(sweep);
    clearTimeout(late);
    await storage.close();
    log.info("stopped");
  };
  const onSignal = (signal: NodeJS.Signals) => {
    stop(signal).catch((error: unknown) => {
      log.error({ err: error }, "could not stop cleanly");
      process.exitCode = 1;
    });
  };
  for (const signal of STOP_SIGNALS) process.off(signal, exitAtOnce).on(signal, onSignal);

  try {
    const url = await app.listen({ port: settings.port, host: settings.host });
    log.info({ url, database: describeDatabase(settings) }, "orders is listening");
  } catch (error) {
    await storage.close();
    throw error;
  }
}

/** Explains in one sentence what an operator can repair, and gives all details of anything else. */
function reasonOf(error: unknown): string {
  return error instanceof DatabaseUnavailableError ? error.message : String(error);
}

try {
  await main(readSettings(process.env));
} catch (error) {
  const text = error instanceof SettingError ? error.message : `orders could not start: ${reasonOf(error)}`;
  process.stderr.write(`${text}\n`);
  process.exitCode = error instanceof SettingError ? 2 : 1;
}
