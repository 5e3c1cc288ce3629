/** Starts the dashboard. */
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/shell.css";
import { render } from "preact";
import { Dashboard } from "./dashboard.tsx";
import { applyTheme, chosenTheme } from "./theme.ts";

applyTheme(chosenTheme());
const root = document.getElementById("root");
if (root !== null) render(<Dashboard />, root);
