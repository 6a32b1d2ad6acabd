//go:build linux && !udpportable

package rnic

// udpFrugal: the UDP link allocates nothing. Elsewhere package net does.
const udpFrugal = true
