//go:build !unix

package privatefile

const noFollow = 0
