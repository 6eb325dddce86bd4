"""Can the gate be trusted?"""
