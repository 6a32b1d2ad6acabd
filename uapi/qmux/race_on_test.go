//go:build race

package qmux_test

const raceEnabled = true
