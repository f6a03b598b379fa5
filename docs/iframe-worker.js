// Browsers start no workers for pages that are opened from a disk, and the search of the site is a worker. Here its
// script runs in a hidden frame. The name IFrameWorker and its importScripts, which returns a promise, are those of the
// npm package iframe-worker, which mkdocs-material expects and would fetch from elsewhere.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow, page = this.frame.contentDocument;
      const load = (source) => new Promise((done, failed) => {
        const script = page.createElement("script");
        script.src = source;
        script.onload = done;
        script.onerror = () => failed(new Error(`Cannot load ${source}`));
        page.body.append(script);
      });
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inner.importScripts = async (...sources) => {
        for (const source of sources) await load(source);
      };
      this.ready = load(new URL(url, location.href).href);
    }
    async postMessage(data) {
      await this.ready;
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
