//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package capture

import "os"

const openFlags = 0

// lock does nothing where there are no advisory locks.
func lock(*os.File) error { return nil }
