package confine

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	mayRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	mayWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// landlockRights are all that a version of Landlock knows of files (landlock(7)).
func landlockRights(version int) uint64 {
	const first = 1<<13 - 1 // from execute to make_sym
	rights := uint64(first)
	if version >= 2 {
		rights |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		rights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		rights |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rights
}

// landlock closes all files but those in the folders, and returns the version of the kernel's Landlock.
// Files that are open stay so.
func landlock(folders Folders) (version int, err error) {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch errno {
	case 0:
	case unix.ENOSYS:
		return 0, errors.New("the kernel has no Landlock")
	case unix.EOPNOTSUPP:
		return 0, errors.New("Landlock is not on in the kernel (lsm=landlock,...)")
	default:
		return 0, fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	version = int(n)
	attr := unix.LandlockRulesetAttr{Handled_access_fs: landlockRights(version)}
	rules, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return version, fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	defer unix.Close(int(rules))
	for _, f := range folders {
		if err := openFolder(int(rules), f, attr.Handled_access_fs); err != nil {
			return version, err
		}
	}
	if err := giveUpPrivileges(); err != nil {
		return version, err
	}
	return version, onAllThreads("landlock_restrict_self", unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0, 0, 0)
}

func openFolder(rules int, f Folder, known uint64) error {
	fd, err := unix.Open(f.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: mayRead, Parent_fd: int32(fd)}
	if f.Write {
		rule.Allowed_access |= mayWrite & known
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("%s: landlock_add_rule: %w", f.Path, errno)
	}
	return nil
}
