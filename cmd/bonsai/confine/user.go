package confine

import (
	"fmt"
	"os/user"
	"strconv"
	"strings"
)

// User is whom a process can become.
type User struct {
	Name     string // as it was written
	UID, GID int
}

// ParseUser reads USER or USER:GROUP, each a name or a number. Without a group it is the user's own.
func ParseUser(text string) (*User, error) {
	name, group, hasGroup := strings.Cut(text, ":")
	u := &User{Name: text}
	account, err := lookupUser(name)
	switch uid, notNumber := strconv.ParseUint(name, 10, 31); {
	case err == nil:
		if u.UID, u.GID, err = numbers(account); err != nil {
			return nil, err
		}
	case notNumber == nil && hasGroup:
		u.UID = int(uid)
	case notNumber == nil:
		return nil, fmt.Errorf("there is no user %s whose group could be taken; write it as %s:GROUP", name, name)
	default:
		return nil, fmt.Errorf("there is no user %q; make one, or write numbers as in 65532:65532", name)
	}
	if hasGroup {
		if u.GID, err = lookupGroup(group); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func lookupUser(name string) (*user.User, error) {
	if u, err := user.Lookup(name); err == nil {
		return u, nil
	}
	return user.LookupId(name)
}

func numbers(u *user.User) (uid, gid int, err error) {
	if uid, err = strconv.Atoi(u.Uid); err == nil {
		gid, err = strconv.Atoi(u.Gid)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("user %s has no numbers on this system; remove this key", u.Username)
	}
	return uid, gid, nil
}

func lookupGroup(text string) (int, error) {
	if g, err := user.LookupGroup(text); err == nil {
		text = g.Gid
	}
	gid, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("there is no group %q; make one, or write its number", text)
	}
	return int(gid), nil
}
