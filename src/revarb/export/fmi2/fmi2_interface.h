/* Types and functions of FMI 2.0 for co-simulation, as the standard prescribes them. */
#ifndef REVARB_FMI2_INTERFACE_H
#define REVARB_FMI2_INTERFACE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tool that links several FMUs into one program gives each one a prefix: -DFMI2_FUNCTION_PREFIX=tank_ */
#ifdef FMI2_FUNCTION_PREFIX
#define FMI2_JOIN_EXPANDED(prefix, name) prefix##name
#define FMI2_JOIN(prefix, name) FMI2_JOIN_EXPANDED(prefix, name)
#define FMI2_NAME(name) FMI2_JOIN(FMI2_FUNCTION_PREFIX, name)
#define FMI2_EXPORT
#else
#define FMI2_NAME(name) name
#if defined _WIN32 || defined __CYGWIN__
#define FMI2_EXPORT __declspec(dllexport)
#elif defined __GNUC__
#define FMI2_EXPORT __attribute__((visibility("default")))
#else
#define FMI2_EXPORT
#endif
#endif

typedef void *fmi2Component;
typedef void *fmi2ComponentEnvironment;
typedef void *fmi2FMUstate;
typedef unsigned int fmi2ValueReference;
typedef double fmi2Real;
typedef int fmi2Integer;
typedef int fmi2Boolean;
typedef char fmi2Char;
typedef const fmi2Char *fmi2String;
typedef char fmi2Byte;

#define fmi2TypesPlatform "default"
#define fmi2True 1
#define fmi2False 0

typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef enum { fmi2DoStepStatus, fmi2PendingStatus, fmi2LastSuccessfulTime, fmi2Terminated } fmi2StatusKind;

typedef void (*fmi2CallbackLogger)(
    fmi2ComponentEnvironment environment, fmi2String instance, fmi2Status status, fmi2String category,
    fmi2String message, ...);
typedef void *(*fmi2CallbackAllocateMemory)(size_t count, size_t size);
typedef void (*fmi2CallbackFreeMemory)(void *memory);
typedef void (*fmi2StepFinished)(fmi2ComponentEnvironment environment, fmi2Status status);

typedef struct {
    fmi2CallbackLogger logger;
    fmi2CallbackAllocateMemory allocateMemory;
    fmi2CallbackFreeMemory freeMemory;
    fmi2StepFinished stepFinished;
    fmi2ComponentEnvironment componentEnvironment;
} fmi2CallbackFunctions;

FMI2_EXPORT const char *FMI2_NAME(fmi2GetTypesPlatform)(void);
FMI2_EXPORT const char *FMI2_NAME(fmi2GetVersion)(void);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetDebugLogging)(
    fmi2Component c, fmi2Boolean loggingOn, size_t nCategories, const fmi2String categories[]);

FMI2_EXPORT fmi2Component FMI2_NAME(fmi2Instantiate)(
    fmi2String instanceName, fmi2Type fmuType, fmi2String fmuGUID, fmi2String fmuResourceLocation,
    const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean loggingOn);
FMI2_EXPORT void FMI2_NAME(fmi2FreeInstance)(fmi2Component c);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetupExperiment)(
    fmi2Component c, fmi2Boolean toleranceDefined, fmi2Real tolerance, fmi2Real startTime,
    fmi2Boolean stopTimeDefined, fmi2Real stopTime);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2EnterInitializationMode)(fmi2Component c);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2ExitInitializationMode)(fmi2Component c);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2Terminate)(fmi2Component c);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2Reset)(fmi2Component c);

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetReal)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2Real value[]);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetInteger)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2Integer value[]);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetBoolean)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2Boolean value[]);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetString)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2String value[]);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetReal)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Real value[]);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetInteger)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Integer value[]);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetBoolean)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Boolean value[]);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetString)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2String value[]);

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetFMUstate)(fmi2Component c, fmi2FMUstate *FMUstate);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetFMUstate)(fmi2Component c, fmi2FMUstate FMUstate);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2FreeFMUstate)(fmi2Component c, fmi2FMUstate *FMUstate);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SerializedFMUstateSize)(fmi2Component c, fmi2FMUstate FMUstate, size_t *size);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SerializeFMUstate)(
    fmi2Component c, fmi2FMUstate FMUstate, fmi2Byte serializedState[], size_t size);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2DeSerializeFMUstate)(
    fmi2Component c, const fmi2Byte serializedState[], size_t size, fmi2FMUstate *FMUstate);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetDirectionalDerivative)(
    fmi2Component c, const fmi2ValueReference vUnknown_ref[], size_t nUnknown, const fmi2ValueReference vKnown_ref[],
    size_t nKnown, const fmi2Real dvKnown[], fmi2Real dvUnknown[]);

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetRealInputDerivatives)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Integer order[], const fmi2Real value[]);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetRealOutputDerivatives)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Integer order[], fmi2Real value[]);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2DoStep)(
    fmi2Component c, fmi2Real currentCommunicationPoint, fmi2Real communicationStepSize,
    fmi2Boolean noSetFMUStatePriorToCurrentPoint);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2CancelStep)(fmi2Component c);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetStatus)(fmi2Component c, const fmi2StatusKind s, fmi2Status *value);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetRealStatus)(fmi2Component c, const fmi2StatusKind s, fmi2Real *value);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetIntegerStatus)(fmi2Component c, const fmi2StatusKind s, fmi2Integer *value);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetBooleanStatus)(fmi2Component c, const fmi2StatusKind s, fmi2Boolean *value);
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetStringStatus)(fmi2Component c, const fmi2StatusKind s, fmi2String *value);

#ifdef __cplusplus
}
#endif

#endif
