//go:build !linux || udpportable

package rnic

const udpFrugal = false
