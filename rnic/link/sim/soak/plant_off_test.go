//go:build !plant

package soak

const planting = false
