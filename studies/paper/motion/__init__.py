"""Motion capture: skeletons, motions, their files and pictures, and the avatar."""
