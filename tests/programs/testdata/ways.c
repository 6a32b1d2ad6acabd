/* The ways to look at the attributes and to walk along them, besides open and
 * stat: each answers as on Linux, by the names that the program gave. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define CLASS "/sys/class/infiniband"
#define GUID CLASS "/rxe0/node_guid"

static int guids, others;

static int on_nftw(const char *path, const struct stat *st, int type, struct FTW *at)
{
	others += strncmp(path, CLASS "/rxe0", sizeof CLASS "/rxe0" - 1) != 0;
	guids += type == FTW_F && st->st_size == 20 && !strcmp(path + at->base, "node_guid") && !strcmp(path, GUID);
	return 0;
}

static int on_ftw(const char *path, const struct stat *st, int type)
{
	guids += type == FTW_F && S_ISREG(st->st_mode) && !strcmp(path, GUID);
	return 0;
}

static void walks(void)
{
	char *paths[] = { CLASS "/rxe0", "/dev/null", NULL };
	FTSENT *e;
	FTS *f;
	CHECK(!nftw(CLASS "/rxe0", on_nftw, 2, FTW_PHYS) && guids == 1 && !others);
	CHECK(!nftw("/dev/null", on_nftw, 8, 0) && others == 1);
	CHECK(!ftw(CLASS "/rxe0", on_ftw, 8) && guids == 2);
	CHECK((f = fts_open(paths, FTS_PHYSICAL, NULL)));
	while ((e = fts_read(f)))
		guids += e->fts_info == FTS_F && !strcmp(e->fts_name, "node_guid");
	CHECK(!fts_close(f) && guids == 3);
}

static void globs(void)
{
	glob_t g;
	CHECK(!glob("/sys/class/infini*/*/ports/1/s[t]ate", 0, NULL, &g) && g.gl_pathc == 1);
	CHECK(!strcmp(g.gl_pathv[0], CLASS "/rxe0/ports/1/state"));
	globfree(&g);
	CHECK(glob(CLASS "/none*", 0, NULL, &g) == GLOB_NOMATCH);
	CHECK(!glob("/dev/nul*", 0, NULL, &g) && g.gl_pathc == 1);
	globfree(&g);
}

static int holds(const char *dir, const char *name)
{
	struct dirent **list;
	int n = scandir(dir, &list, NULL, alphasort), found = 0;
	CHECK(n > 0);
	while (n--)
		found += !strcmp(list[n]->d_name, name);
	return found;
}

int main(void)
{
	struct statfs fs;
	struct statvfs vfs;
	char text[32];
	FILE *f = fopen("/dev/null", "r");
	int fd;
	walks();
	globs();
	CHECK(!eaccess(GUID, R_OK) && !euidaccess(CLASS "/../infiniband/./rxe0//", R_OK));
	FAILS(eaccess(CLASS "/rxe9", R_OK), ENOENT);
	CHECK(!statfs(CLASS, &fs) && fs.f_type == SYSFS_MAGIC && !statvfs(GUID, &vfs));
	CHECK(!statfs("/dev/infiniband", &fs) && fs.f_type != SYSFS_MAGIC);
	if (!supervised()) { /* these calls are not held */
		CHECK(inotify_add_watch(inotify_init(), CLASS, IN_CREATE) >= 0);
		CHECK(!chdir(CLASS) && !access("rxe0/node_guid", R_OK));
		CHECK(!chdir("/sys/class") && !access("infiniband/rxe0", F_OK) && !access("net/lo/address", R_OK));
		CHECK(!chdir("/") && access("infiniband/rxe0", F_OK));
	}
	CHECK((f = freopen(GUID, "r", f)) && fgets(text, sizeof text, f) && strlen(text) == 20 && !fclose(f));

	CHECK(holds("/sys/class", "infiniband") && holds("/sys/class", "infiniband_verbs") && holds("/sys/class", "net"));
	CHECK(holds("/sys/class/misc", "rdma_cm") && !access("/sys/class/net/lo", F_OK));
	CHECK((fd = open(CLASS "/rxe0/ports/1/gid_attrs/ndevs/5", O_RDONLY)) >= 0); /* no GID has the place */
	FAILS(read(fd, text, sizeof text), EINVAL);
	CHECK(!close(fd) && (fd = open(CLASS "/rxe0/ports/1/gid_attrs/ndevs/0", O_RDONLY)) >= 0 && read(fd, text, sizeof text) == 3);
	if (!fork()) /* a child sees the same, without a word */
		_exit(access(GUID, R_OK) || !holds("/sys/class/infiniband_verbs", "uverbs0"));
	CHECK(wait(&fd) > 0 && !fd);
	puts("all ways lead there");
	return 0;
}
