// What the modules expect of a browser and the test environment lacks.
Object.assign(globalThis, {
  IntersectionObserver: class {
    observe(): void {}
    unobserve(): void {}
  },
});
