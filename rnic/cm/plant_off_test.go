//go:build !plant

package cm_test

const planting = false
