package confine

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	statAt    = unix.SYS_FSTATAT
)

// ofMachine are the calls of this machine alone.
var ofMachine = []uint32{}
