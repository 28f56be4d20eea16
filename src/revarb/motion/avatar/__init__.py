"""The avatar in the browser: a model of walking and running under a speed slider. `revarb avatar` opens it."""
