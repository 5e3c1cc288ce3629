/** Builds of templates, and the names that lead to what they made, in the database. */
import type { BuildLogEntry, BuildRecord, TemplateTag } from "@hibernaut/domain/build";
import type { Database } from "better-sqlite3";
import type { BuildStore } from "./contract.ts";
import { atomic } from "./database.ts";

/** `build` is JSON. */
interface Row {
  build: string;
}

/** Returns the repository of builds in an open, migrated database. */
export function buildStore(db: Database): BuildStore {
  const insert = db.prepare<{ id: string; app: string; build: string }>(`
    INSERT INTO template_builds (id, app, build) SELECT @id, @app, @build WHERE EXISTS (SELECT 1 FROM apps WHERE name = @app)
  `);
  const update = db.prepare<{ id: string; build: string }>("UPDATE template_builds SET build = @build WHERE id = @id");
  const setLog = db.prepare<{ id: string; log: string }>("UPDATE template_builds SET log = @log WHERE id = @id");
  const getLog = db.prepare<[string], { log: string }>("SELECT log FROM template_builds WHERE id = ?");
  const get = db.prepare<[string], Row>("SELECT build FROM template_builds WHERE id = ?");
  const listAll = db.prepare<[], Row>("SELECT build FROM template_builds ORDER BY seq");
  const listApp = db.prepare<[string], Row>("SELECT build FROM template_builds WHERE app = ? ORDER BY seq");
  const remove = db.prepare<[string]>("DELETE FROM template_builds WHERE id = ?");
  const setTag = db.prepare<TemplateTag>(`
    INSERT INTO template_tags (app, name, tag, build, template, assigned_at)
    SELECT @app, @name, @tag, @build, @template, @assignedAt WHERE EXISTS (SELECT 1 FROM templates WHERE id = @template AND app = @app)
    ON CONFLICT DO UPDATE SET build = @build, template = @template, assigned_at = @assignedAt
  `);
  const removeTag = db.prepare<[string, string, string]>(
    "DELETE FROM template_tags WHERE app = ? AND name = ? AND tag = ?",
  );
  const tags = db.prepare<[string], TemplateTag>(
    "SELECT app, name, tag, build, template, assigned_at AS assignedAt FROM template_tags WHERE app = ? ORDER BY name, tag",
  );
  const write = (build: BuildRecord) => update.run({ id: build.id, build: JSON.stringify(build) }).changes === 1;
  return {
    insert: (build) => insert.run({ id: build.id, app: build.app, build: JSON.stringify(build) }).changes === 1,
    update: write,
    finish: atomic(db, (build: BuildRecord, log: readonly BuildLogEntry[], made: readonly TemplateTag[]) => {
      // A build that was deleted meanwhile, with its app, has made nothing.
      if (!write(build)) return false;
      setLog.run({ id: build.id, log: JSON.stringify(log) });
      for (const tag of made) setTag.run(tag);
      return true;
    }),
    get(id) {
      const row = get.get(id);
      return row && recordOf(row);
    },
    log: (id) => JSON.parse(getLog.get(id)?.log ?? "[]") as BuildLogEntry[],
    list: (app) => (app === undefined ? listAll.all() : listApp.all(app)).map(recordOf),
    remove: (id) => void remove.run(id),
    tag: atomic(db, (made: readonly TemplateTag[]) => {
      for (const tag of made) setTag.run(tag);
    }),
    untag: atomic(db, (app: string, name: string, words: readonly string[]) => {
      for (const word of words) removeTag.run(app, name, word);
    }),
    tags: (app) => tags.all(app),
  };
}

function recordOf({ build }: Row): BuildRecord {
  return JSON.parse(build) as BuildRecord;
}
