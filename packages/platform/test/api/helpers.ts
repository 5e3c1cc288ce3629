/** An API over the double, on a free port of its own, gone after the test. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { buildApi } from "../../src/api/app.ts";
import type { Api, ApiDeps } from "../../src/api/deps.ts";
import { createToken } from "../../src/api/tokens.ts";
import type { TokenStore } from "../../src/store/contract.ts";
import { openStore } from "../../src/store/store.ts";
import { FakeImages, FakeRegistries } from "./fake-images.ts";
import { fakeResources } from "./fake-resources.ts";
import { FakeMachineService } from "./fake-service.ts";
import { fakeVolumes } from "./fake-volumes.ts";

export interface TestApi {
  api: Api;
  url: string;
  token: string;
  tokens: TokenStore;
  machines: FakeMachineService;
  /** A fresh folder that goes with the API. */
  folder: string;
  /** What the API logged, parsed. */
  logged: Record<string, unknown>[];
  close(): Promise<void>;
}

export async function startApi(changes: Partial<ApiDeps> = {}): Promise<TestApi> {
  const folder = mkdtempSync(join(tmpdir(), "hibernaut-api-"));
  const store = openStore(join(folder, "hibernaut.db"));
  const machines = new FakeMachineService();
  const logged: Record<string, unknown>[] = [];
  const logger = pino(
    { level: "warn" },
    { write: (line) => void logged.push(JSON.parse(line) as Record<string, unknown>) },
  );
  const api = await buildApi({
    ...fakeResources(machines),
    images: new FakeImages(),
    volumes: fakeVolumes(machines, folder),
    registries: new FakeRegistries(),
    tokens: store.tokens,
    platform: {
      version: "0.1.0",
      region: "local",
      hypervisor: { hypervisor: "fake", version: "1", accelerator: "fake", cpu_model: "none", machine_type: "none" },
      acceleratorReason: "a test",
      network: { mode: "user", reason: "a test" },
      guestBundle: "1",
    },
    check: store.check,
    logger,
    ...changes,
  });
  const url = await api.listen({ host: "127.0.0.1", port: 0 });
  const { token } = createToken(store.tokens, "test");
  return {
    api,
    url,
    token,
    tokens: store.tokens,
    machines,
    folder,
    logged,
    async close() {
      await api.close();
      machines.close();
      store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
