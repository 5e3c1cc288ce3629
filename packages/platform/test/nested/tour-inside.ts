/** The tour of `npm run up` in the outer machine, where the setup has nothing to do. */
import { expect, test } from "vitest";
import { endTour, tour } from "../../../../scripts/lib/tour.mjs";
import { NOTHING_LEFT, Place, WARM } from "../helpers/served.ts";

test("the tour: an app with a database starts, is suspended, and continues with its memory", async () => {
  const place = await Place.open(WARM);
  try {
    const { served } = place;
    const headers = { authorization: `Bearer ${await place.token()}`, "content-type": "application/json" };
    const call = async (method: string, path: string, body?: unknown) => {
      const sent = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
      const response = await fetch(`${served.apiUrl}/v1${path}`, sent);
      const answer = (await response.json()) as { error?: string; message?: string };
      if (!response.ok) throw Object.assign(new Error(answer.message), { code: answer.error });
      return answer;
    };
    const step = async <T>(name: string, work: () => Promise<T>) => {
      console.log(`     the tour: ${name}`);
      return work();
    };
    const platform = { apiUrl: served.apiUrl, call } as unknown as Parameters<typeof tour>[0];
    const result = await tour(platform, { step } as unknown as Parameters<typeof tour>[1]);
    console.log(`     the tour: ${JSON.stringify(result)}`);
    expect(result).toMatchObject({
      accelerator: "kvm",
      resumed: true,
      found: ["Jalapeño Green Tea Jar", "Salted Green Tea"],
      requests: [1, 2],
    });
    await endTour(platform);
  } finally {
    expect(await place.close()).toEqual(NOTHING_LEFT);
  }
});
