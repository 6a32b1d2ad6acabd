//go:build !plant

package soak

const (
	planting   = false
	replayTags = ""
)

func replayPlant() string { return "" }
