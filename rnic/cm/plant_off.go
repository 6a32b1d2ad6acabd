//go:build !plant

package cm

const planted = plantNone
