/** What someone gets who can write to the etcd of a cluster, and has nothing else of it. */
import { createHash } from "node:crypto";
import { makeKey } from "@hibernaut/lib/certificates";
import { expect, it, onTestFinished } from "vitest";
import { askToJoin } from "../src/ask-to-join.ts";
import { EtcdDirectory } from "../src/etcd/directory.ts";
import { hashOf, newJoinSecret, readJoinToken } from "../src/join-token.ts";
import { KEYS } from "../src/keys.ts";
import { startHosts, type TestHost } from "./hosts.ts";

it("who writes a join token and a token for the API into etcd gets neither keys nor an answer", async () => {
  await using hosts = await startHosts({ count: 1, images: false });
  const [a] = hosts.all as [TestHost];
  const etcd = new EtcdDirectory({ endpoints: hosts.etcd.endpoints });
  onTestFinished(() => etcd.close());
  const put = (key: string, record: object) => etcd.transact([], [{ key, value: JSON.stringify(record) }]);

  const { id, secret } = newJoinSecret();
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  await put(`${KEYS.joins}${id}`, { hash: hashOf(secret), expiresAt });
  // Where the host is and how to recognize it is not a secret.
  const known = readJoinToken((await a.client.createJoinToken()).token);
  const asking = { id, secret, name: "mallory", publicKey: makeKey().publicKey, version: "0.1.0", region: "local" };
  await expect(askToJoin({ ...known, id, secret }, asking)).rejects.toMatchObject({ code: "unauthenticated" });

  // Written like a real one, of which the host has heard when it hears of a later one.
  const [real] = (await etcd.list(KEYS.tokens)).entries;
  const { record } = JSON.parse(real?.value ?? "{}") as { record: object };
  const token = `hib_${"0".repeat(32)}`;
  const hash = createHash("sha256").update(token).digest("hex");
  await put(`${KEYS.tokens}forged`, { ...record, id: "forged", hash });
  const later = await a.client.createToken("later", { scopes: ["admin"] });
  expect(await sessionOf(a, later.token)).toBe(200);
  expect(await sessionOf(a, token)).toBe(401);
});

async function sessionOf(host: TestHost, token: string): Promise<number> {
  const reply = await fetch(`${host.served.apiUrl}/v1/session`, { headers: { authorization: `Bearer ${token}` } });
  return reply.status;
}
