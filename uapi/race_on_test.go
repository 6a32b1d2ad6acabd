//go:build race

package uapi

const raceEnabled = true
