//go:build !plant

package engine

const planted = plantNone
