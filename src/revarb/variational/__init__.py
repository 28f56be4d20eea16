"""The variational distribution of the latent states, all parameters, and the REVARB bound."""
