/** How to restore a backup. The dashboard shows the commands, and runs none of them. */
import type { BackupSet, BackupTarget } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { Command } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { appCommand, platformCommand, restorableApps } from "./commands.ts";

interface RestoreProps {
  target: BackupTarget;
  set: BackupSet;
  onClose(): void;
}

/** Shows the commands for one app of the set, and for everything in it. */
export function RestoreDialog({ target, set, onClose }: RestoreProps) {
  const apps = restorableApps(set);
  const [app = "", setApp] = useState(apps[0]);
  const from = { target: target.name, set: set.set };
  return (
    <Dialog title={`Restore ${set.set}`} onClose={onClose}>
      {apps.length > 0 && (
        <>
          <label class="field">
            <span>One app, with the platform that runs</span>
            <select value={app} onChange={(event) => setApp(event.currentTarget.value)}>
              {apps.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <p>A copy, next to the app as it is now:</p>
          <Command text={appCommand(from, app, "copy")} />
          <p>In its place. The machines that it has now are kept, cordoned:</p>
          <Command text={appCommand(from, app, "in place")} />
        </>
      )}
      <p>Everything, on a host without a platform. The file is the one with the target's key:</p>
      <Command text={platformCommand(target, set.set)} />
    </Dialog>
  );
}
