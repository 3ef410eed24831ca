// Starts `tilewright lsp` and lets it look after schedules, workloads, libraries and programs.

import { ExtensionContext, commands, window, workspace } from "vscode";
import { LanguageClient, LanguageClientOptions, ServerOptions } from "vscode-languageclient/node";

let client: LanguageClient | undefined;

// The server passes RON files over that are clearly something else, so that all may be given to it.
const options: LanguageClientOptions = {
    documentSelector: [
        { scheme: "file", pattern: "**/*.ron" },
        { scheme: "file", language: "tilewright" },
        { scheme: "file", language: "tilewright-program" },
        { scheme: "untitled", language: "tilewright" },
    ],
    // What a script uses may change without being open.
    synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.{ron,tw}") },
};

async function start(): Promise<void> {
    const [command, ...args] = workspace.getConfiguration("tilewright").get<string[]>("command", []);
    if (command === undefined) {
        return;
    }
    const server: ServerOptions = { command, args };
    client = new LanguageClient("tilewright", "tilewright", server, options);
    try {
        await client.start();
    } catch (error) {
        client = undefined;
        const words = `\`${command}\` does not start (${error}): install it, or set tilewright.command`;
        await window.showErrorMessage(words);
    }
}

async function stop(): Promise<void> {
    const running = client;
    client = undefined;
    await running?.stop();
}

export async function activate(context: ExtensionContext): Promise<void> {
    const restart = async (): Promise<void> => {
        await stop();
        await start();
    };
    context.subscriptions.push(
        commands.registerCommand("tilewright.restart", restart),
        workspace.onDidChangeConfiguration(async (change) => {
            if (change.affectsConfiguration("tilewright.command")) {
                await restart();
            }
        }),
    );
    await start();
}

export function deactivate(): Promise<void> {
    return stop();
}
