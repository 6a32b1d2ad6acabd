//go:build !race

package qmux_test

const raceEnabled = false
