"""How often prompt injections get through, measured with the public AgentDojo beside a rival, without any model."""
