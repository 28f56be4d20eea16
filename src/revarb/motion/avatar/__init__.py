"""The avatar: a model of walking and running under a speed slider in the browser. `revarb avatar` opens it."""
