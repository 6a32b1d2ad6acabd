//go:build !plant

package mem

const (
	plantNone     = 0
	plantStaleKey = 1

	planted = plantNone
)
