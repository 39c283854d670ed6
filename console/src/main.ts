import { mount } from "svelte";
import App from "./App.svelte";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { theme } from "./ui/theme.svelte";

theme.begin();
mount(App, { target: document.getElementById("app") as HTMLElement });
