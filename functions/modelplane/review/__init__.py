"""Looking at manifests and fleets for people: findings, forecasts, differences, pictures."""
