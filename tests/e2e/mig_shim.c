/*
 * Multi-Instance GPU, and XID errors, for a stand-in of libnvidia-ml.so.1 that knows neither.
 *
 * Preloaded, this library answers what programs ask NVML about MIG, and whatever they ask about a MIG device. All other
 * questions go on to the library. MIG_SHIM_TABLE names a text file with a line for each board that has MIG, and one for
 * each MIG device behind the line of its board:
 *
 *   board INDEX ENABLED                          ENABLED: 1 if the board is in MIG mode, else 0
 *   device UUID GPU_PROFILE COMPUTE_PROFILE SLICES MIB MEDIA
 *
 * The profiles are NVML's numbers, NVML_GPU_INSTANCE_PROFILE_* and NVML_COMPUTE_INSTANCE_PROFILE_*. Each device is a
 * whole GPU instance with one compute instance. The types below have the fields of those of nvml.h in their order.
 *
 * XID_SHIM_FILE names a text file that grows while programs run: a line "INDEX XID" for each error of a board.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };
enum { MOST_BOARDS = 16, MOST_DEVICES = 8 };

typedef void *handle;  /* of a board, or a struct device: MIG device, GPU instance and compute instance alike */

struct device {
    unsigned board, number, gpu_profile, compute_profile, slices, media;
    unsigned long long mib;
    char uuid[48];
};

static struct board {
    int has_mig, is_enabled;
    unsigned count;
    struct device devices[MOST_DEVICES];
} boards[MOST_BOARDS];

struct attributes {
    unsigned multiprocessors, copy, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices;
    unsigned long long mib;
};
struct gpu_profile {
    unsigned id, peer_to_peer, slices, instances, multiprocessors, copy, decoders, encoders, jpeg, ofa;
    unsigned long long mib;
};
struct gpu_instance {
    handle board;
    unsigned id, profile, start, size;
};
struct compute_profile {
    unsigned id, slices, instances, multiprocessors, copy, decoders, encoders, jpeg, ofa;
};
struct compute_instance {
    handle board, gpu_instance;
    unsigned id, profile, start, size;
};
struct memory {
    unsigned long long total, free, used;
};

__attribute__((constructor)) static void read_table(void)
{
    const char *path = getenv("MIG_SHIM_TABLE");
    FILE *table = path ? fopen(path, "r") : NULL;
    char line[256];
    struct board *board = NULL;

    while (table && fgets(line, sizeof line, table)) {
        unsigned index, is_enabled;
        struct device device = {0};

        if (sscanf(line, "board %u %u", &index, &is_enabled) == 2 && index < MOST_BOARDS) {
            board = &boards[index];
            board->has_mig = 1;
            board->is_enabled = (int)is_enabled;
        } else if (board && board->count < MOST_DEVICES &&
                   sscanf(line, "device %47s %u %u %u %llu %u", device.uuid, &device.gpu_profile,
                          &device.compute_profile, &device.slices, &device.mib, &device.media) == 6) {
            device.board = (unsigned)(board - boards);
            device.number = board->count;
            board->devices[board->count++] = device;
        } else {
            fprintf(stderr, "%s: cannot read this line: %s", path, line);
            abort();
        }
    }
    if (table)
        fclose(table);
}

static void *of_library(const char *name)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (!library) {
        fprintf(stderr, "%s: libnvidia-ml.so.1 is not loaded\n", name);
        abort();
    }
    return dlsym(library, name);
}
#define PASS_ON(name, types) ((int (*) types)of_library(name))

static struct device *mig_device(handle it)
{
    const char *first = (const char *)boards, *last = first + sizeof boards;

    return (const char *)it >= first && (const char *)it < last ? it : NULL;
}

static struct board *board_of(handle it)
{
    unsigned index;

    if (mig_device(it) || PASS_ON("nvmlDeviceGetIndex", (handle, unsigned *))(it, &index) != SUCCESS)
        return NULL;
    return index < MOST_BOARDS && boards[index].has_mig ? &boards[index] : NULL;
}

static handle handle_of_board(unsigned index)
{
    handle found = NULL;

    PASS_ON("nvmlDeviceGetHandleByIndex_v2", (unsigned, handle *))(index, &found);
    return found;
}

/* --- boards ------------------------------------------------------------------------------------------------------- */

int nvmlDeviceGetMigMode(handle it, unsigned *current, unsigned *pending)
{
    struct board *board = board_of(it);

    if (!board)
        return NOT_SUPPORTED;
    *current = *pending = (unsigned)board->is_enabled;
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(handle it, unsigned *count)
{
    *count = board_of(it) ? MOST_DEVICES : 0;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(handle it, unsigned index, handle *device)
{
    struct board *board = board_of(it);

    if (!board || index >= board->count)
        return NOT_FOUND;
    *device = &board->devices[index];
    return SUCCESS;
}

int nvmlDeviceGetGpuInstanceById(handle it, unsigned id, handle *instance)
{
    return nvmlDeviceGetMigDeviceHandleByIndex(it, id, instance);
}

int nvmlDeviceGetGpuInstanceProfileInfo(handle it, unsigned profile, struct gpu_profile *info)
{
    struct board *board = board_of(it);

    for (unsigned i = 0; board && i < board->count; i++) {
        struct device *one = &board->devices[i];

        if (one->gpu_profile == profile) {
            *info = (struct gpu_profile){.id = profile, .slices = one->slices, .instances = 1, .mib = one->mib};
            return SUCCESS;
        }
    }
    return NOT_SUPPORTED;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, handle *found)
{
    for (unsigned b = 0; b < MOST_BOARDS; b++)
        for (unsigned i = 0; i < boards[b].count; i++)
            if (strcmp(boards[b].devices[i].uuid, uuid) == 0) {
                *found = &boards[b].devices[i];
                return SUCCESS;
            }
    return PASS_ON("nvmlDeviceGetHandleByUUID", (const char *, handle *))(uuid, found);
}

/* --- MIG devices -------------------------------------------------------------------------------------------------- */

int nvmlDeviceIsMigDeviceHandle(handle it, unsigned *is_one)
{
    *is_one = mig_device(it) != NULL;
    return SUCCESS;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle it, handle *board)
{
    struct device *one = mig_device(it);

    if (!one)
        return INVALID_ARGUMENT;
    *board = handle_of_board(one->board);
    return SUCCESS;
}

int nvmlDeviceGetAttributes_v2(handle it, struct attributes *found)
{
    struct device *one = mig_device(it);

    if (!one)
        return NOT_SUPPORTED;
    *found = (struct attributes){.copy = one->slices,
                                 .decoders = one->media,
                                 .jpeg = one->media,
                                 .ofa = one->media,
                                 .gpu_slices = one->slices,
                                 .compute_slices = one->slices,
                                 .mib = one->mib};
    return SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(handle it, unsigned *id)
{
    struct device *one = mig_device(it);

    if (!one)
        return NOT_SUPPORTED;
    *id = one->number;
    return SUCCESS;
}

int nvmlDeviceGetComputeInstanceId(handle it, unsigned *id)
{
    *id = 0;
    return mig_device(it) ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetUUID(handle it, char *text, unsigned length)
{
    struct device *one = mig_device(it);

    if (!one)
        return PASS_ON("nvmlDeviceGetUUID", (handle, char *, unsigned))(it, text, length);
    return snprintf(text, length, "%s", one->uuid) < (int)length ? SUCCESS : INSUFFICIENT_SIZE;
}

int nvmlDeviceGetIndex(handle it, unsigned *index)
{
    struct device *one = mig_device(it);

    if (!one)
        return PASS_ON("nvmlDeviceGetIndex", (handle, unsigned *))(it, index);
    *index = one->number;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(handle it, struct memory *memory)
{
    struct device *one = mig_device(it);

    if (!one)
        return PASS_ON("nvmlDeviceGetMemoryInfo", (handle, struct memory *))(it, memory);
    *memory = (struct memory){.total = one->mib << 20, .free = one->mib << 20};
    return SUCCESS;
}

/* --- the instances of a MIG device -------------------------------------------------------------------------------- */

int nvmlGpuInstanceGetInfo(handle it, struct gpu_instance *info)
{
    struct device *one = mig_device(it);

    if (!one)
        return INVALID_ARGUMENT;
    *info = (struct gpu_instance){
        .board = handle_of_board(one->board), .id = one->number, .profile = one->gpu_profile, .size = one->slices};
    return SUCCESS;
}

int nvmlGpuInstanceGetComputeInstanceById(handle it, unsigned id, handle *instance)
{
    *instance = it;
    return mig_device(it) && id == 0 ? SUCCESS : NOT_FOUND;
}

int nvmlGpuInstanceGetComputeInstanceProfileInfo(handle it, unsigned profile, unsigned engines,
                                                 struct compute_profile *info)
{
    struct device *one = mig_device(it);

    if (!one || one->compute_profile != profile || engines != 0)
        return NOT_SUPPORTED;
    *info = (struct compute_profile){.id = profile, .slices = one->slices, .instances = 1};
    return SUCCESS;
}

int nvmlComputeInstanceGetInfo_v2(handle it, struct compute_instance *info)
{
    struct device *one = mig_device(it);

    if (!one)
        return INVALID_ARGUMENT;
    *info = (struct compute_instance){.board = handle_of_board(one->board),
                                      .gpu_instance = it,
                                      .profile = one->compute_profile,
                                      .size = one->slices};
    return SUCCESS;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

enum { TIMEOUT = 10, XID_CRITICAL_ERROR = 8, POLL_MS = 50 };

struct event_set {
    long offset;
    unsigned boards;
};
struct event {
    handle board;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

int nvmlEventSetCreate(struct event_set **set)
{
    *set = calloc(1, sizeof **set);
    return SUCCESS;
}

int nvmlEventSetFree(struct event_set *set)
{
    free(set);
    return SUCCESS;
}

int nvmlDeviceGetSupportedEventTypes(handle it, unsigned long long *types)
{
    (void)it;
    *types = XID_CRITICAL_ERROR;
    return SUCCESS;
}

int nvmlDeviceRegisterEvents(handle it, unsigned long long types, struct event_set *set)
{
    unsigned index;
    int answer = PASS_ON("nvmlDeviceGetIndex", (handle, unsigned *))(it, &index);

    if (answer == SUCCESS && types & XID_CRITICAL_ERROR)
        set->boards |= 1u << index;
    return answer;
}

static int next_xid(struct event_set *set, struct event *event)
{
    const char *path = getenv("XID_SHIM_FILE");
    FILE *file = path ? fopen(path, "r") : NULL;
    unsigned index;
    char end;
    int is_found = 0;

    if (file && fseek(file, set->offset, SEEK_SET) == 0)
        while (!is_found && fscanf(file, "%u %llu%c", &index, &event->data, &end) == 3) {
            set->offset = ftell(file);
            is_found = set->boards >> index & 1;
        }
    if (file)
        fclose(file);
    if (is_found)
        event->board = handle_of_board(index);
    return is_found;
}

int nvmlEventSetWait_v2(struct event_set *set, struct event *event, unsigned ms)
{
    event->type = XID_CRITICAL_ERROR;
    event->gpu_instance = event->compute_instance = 0xFFFFFFFF;
    for (; !next_xid(set, event); ms -= POLL_MS) {
        if (ms < POLL_MS)
            return TIMEOUT;
        usleep(POLL_MS * 1000);
    }
    return SUCCESS;
}
