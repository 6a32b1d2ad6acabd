package netlinkmgr

import "runtime"

// debianArch is Debian's name of the machine in its kernel packages.
func debianArch() string {
	if name, ok := map[string]string{"386": "686-pae", "arm": "armmp", "ppc64le": "powerpc64le", "mips64le": "mips64el"}[runtime.GOARCH]; ok {
		return name
	}
	return runtime.GOARCH
}
