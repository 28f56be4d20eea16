// Plays the motions of the page: measured on the left, simulated on the right. y is up, the walk is along z.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const motions = JSON.parse(byId("motions").textContent);
  const METRE = 1000; // the motions are in millimetres
  const TILT = 0.14; // radians: the camera is a little above, so that the ground is visible
  const GRID = METRE / 4;
  const TURN_PER_PIXEL = 0.01;
  const LONGEST_GAP = 0.1; // seconds: a page that was hidden continues where it stopped

  const canvases = { measured: byId("measured"), simulated: byId("simulated") };
  const state = { clip: motions.clips[0], time: 0, playing: false, yaw: 0.45, last: null, request: 0 };
  const extent = measure(motions.clips);

  // --- space -------------------------------------------------------------------------------------------------------

  function jointsOf(frame) {
    return Array.from({ length: frame.length / 3 }, (_, k) => frame.slice(3 * k, 3 * k + 3));
  }

  // The lowest joint that was measured.
  function groundOf(clip) {
    return clip.measured.flatMap(jointsOf).reduce((lowest, [, y]) => Math.min(lowest, y), Infinity);
  }

  // One scale for all motions, so that they can be compared, and small enough for every direction of view.
  function measure(clips) {
    const found = { radius: 0, above: 0, below: 0 };
    for (const clip of clips) {
      clip.ground = groundOf(clip);
      for (const frame of [...clip.measured, ...clip.simulated]) {
        for (const [x, y, z] of jointsOf(frame)) {
          found.radius = Math.max(found.radius, Math.hypot(x - frame[0], z - frame[2]));
          found.above = Math.max(found.above, y - clip.ground);
          found.below = Math.max(found.below, clip.ground - y);
        }
      }
    }
    return found;
  }

  // Linear interpolation between frames, for slow playback.
  function poseAt(frames, time) {
    const now = Math.floor(time);
    const next = frames[Math.min(now + 1, frames.length - 1)];
    return jointsOf(frames[now].map((value, k) => value + (time - now) * (next[k] - value)));
  }

  // Seen from the right at yaw 0; `depth` increases away from the camera.
  function projection(canvas, root, ground) {
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const below = extent.below + extent.radius * Math.sin(TILT) + 0.05 * METRE;
    const scale = Math.min(width / (2.1 * extent.radius), height / (below + extent.above + 0.15 * METRE));
    const floor = height - scale * below;
    const [cos, sin] = [Math.cos(state.yaw), Math.sin(state.yaw)];
    const point = ([x, y, z]) => {
      const [right, away] = [z - root[2], x - root[0]];
      const depth = away * cos - right * sin;
      const up = (y - ground) * Math.cos(TILT) + depth * Math.sin(TILT);
      return { x: width / 2 + scale * (right * cos + away * sin), y: floor - scale * up, depth };
    };
    return { point, scale };
  }

  // --- drawing -----------------------------------------------------------------------------------------------------

  // Resize the canvas to the screen's pixels and clear it.
  function prepareCanvas(canvas) {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((length) => Math.round(length * ratio));
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    context.lineCap = "round";
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    return context;
  }

  function drawLine(context, from, to) {
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
  }

  // A circular part of a grid that is fixed to the ground, around the root.
  function drawGround(context, view, root, ground) {
    const radius = extent.radius;
    Object.assign(context, { strokeStyle: "#dcdcdc", lineWidth: 1 });
    for (const [across, along] of [[0, 2], [2, 0]]) {
      const first = Math.ceil((root[across] - radius) / GRID) * GRID;
      for (let place = first; place <= root[across] + radius; place += GRID) {
        const half = Math.sqrt(Math.max(0, radius ** 2 - (place - root[across]) ** 2));
        const ends = [-half, half].map((distance) => {
          const point = [0, ground, 0];
          point[across] = place;
          point[along] = root[along] + distance;
          return view.point(point);
        });
        drawLine(context, ...ends);
      }
    }
  }

  function drawSkeleton(context, view, pose, colours) {
    const points = pose.map(view.point);
    const bones = motions.bones.map(([a, b, side]) => ({ ends: [points[a], points[b]], side }));
    bones.sort((one, other) => other.ends[0].depth + other.ends[1].depth - one.ends[0].depth - one.ends[1].depth);
    context.lineWidth = Math.max(2, 0.026 * METRE * view.scale);
    for (const { ends, side } of bones) {
      context.strokeStyle = colours[side];
      drawLine(context, ...ends);
    }
    for (const [top, neck] of motions.heads) drawHead(context, view, pose[top], pose[neck], colours.middle);
  }

  function drawHead(context, view, top, neck, colour) {
    const centre = view.point(top.map((value, k) => (value + neck[k]) / 2));
    const length = Math.hypot(...top.map((value, k) => value - neck[k]));
    context.fillStyle = colour;
    context.beginPath();
    context.arc(centre.x, centre.y, motions.headSize * length * view.scale, 0, 2 * Math.PI);
    context.fill();
  }

  function drawCanvas(what, overlay) {
    const canvas = canvases[what];
    const context = prepareCanvas(canvas);
    const { ground } = state.clip;
    const poses = overlay ? [["measured", "overlay"], [what, what]] : [[what, what]];
    poses.forEach(([frames, colour], number) => {
      const pose = poseAt(state.clip[frames], state.time);
      const view = projection(canvas, pose[0], ground);
      if (number === 0) drawGround(context, view, pose[0], ground);
      drawSkeleton(context, view, pose, motions.colours[colour]);
    });
  }

  function draw() {
    drawCanvas("measured", false);
    drawCanvas("simulated", byId("overlay").checked);
    const [frame, clip] = [Math.floor(state.time), state.clip];
    const scored = frame < clip.scoredFrom ? "not scored yet" : "scored";
    byId("time").value = frame;
    byId("clock").textContent = `frame ${frame + 1} of ${clip.measured.length} · ${seconds(frame)} · ${scored}`;
    byId("time").setAttribute("aria-valuetext", byId("clock").textContent);
  }

  // --- time --------------------------------------------------------------------------------------------------------

  const seconds = (frame) => `${(frame * state.clip.dt).toFixed(2)} s`;

  function tick(now) {
    const passed = state.last === null ? 0 : Math.min((now - state.last) / 1000, LONGEST_GAP);
    state.last = now;
    state.time = (state.time + (passed * Number(byId("speed").value)) / state.clip.dt) % state.clip.measured.length;
    draw();
    state.request = requestAnimationFrame(tick);
  }

  function play(playing) {
    cancelAnimationFrame(state.request);
    Object.assign(state, { playing, last: null });
    byId("play").textContent = playing ? "Pause" : "Play";
    if (playing) state.request = requestAnimationFrame(tick);
  }

  function goTo(frame) {
    const length = state.clip.measured.length;
    play(false);
    state.time = (frame + length) % length;
    draw();
  }

  function choose(number) {
    const clip = motions.clips[number];
    const [length, start] = [clip.measured.length, clip.scoredFrom];
    Object.assign(state, { clip, time: 0, last: null });
    byId("time").max = length - 1;
    byId("note").textContent = clip.note;
    byId("scored").style.setProperty("--start", length > 1 ? Math.min(start / (length - 1), 1) : 0);
    byId("scored").hidden = start >= length;
    byId("start").textContent = start < length ? `scored from frame ${start + 1} (${seconds(start)})` : "not scored";
    draw();
  }

  // --- input -------------------------------------------------------------------------------------------------------

  function turnByDragging(canvas) {
    let from = null;
    canvas.addEventListener("pointerdown", (event) => {
      from = event.clientX;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (from === null) return;
      state.yaw -= (event.clientX - from) * TURN_PER_PIXEL;
      from = event.clientX;
      draw();
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (from = null));
  }

  function onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    // Keys that the focused control handles itself are left to it.
    const leftTo = (controls) => document.activeElement?.matches(controls);
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === " " && !leftTo("select, button, [type=checkbox]")) play(!state.playing);
    else if (step && !leftTo("select, [type=range]")) goTo(Math.floor(state.time) + step);
    else return;
    event.preventDefault();
  }

  byId("play").addEventListener("click", () => play(!state.playing));
  byId("clip").addEventListener("change", (event) => choose(event.target.value));
  byId("time").addEventListener("input", (event) => goTo(Number(event.target.value)));
  byId("overlay").addEventListener("change", draw);
  document.addEventListener("keydown", onKey);
  const resizes = new ResizeObserver(draw);
  for (const canvas of Object.values(canvases)) {
    turnByDragging(canvas);
    resizes.observe(canvas);
  }
  choose(byId("clip").value); // browsers keep the choice when a page is reloaded
  play(!window.matchMedia("(prefers-reduced-motion: reduce)").matches);
})();
