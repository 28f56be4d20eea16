/* FMI 2.0 co-simulation around the step of a trained model.

   fmu_model.h names the model: its sizes, its functions and the start values of its variables. The value references of
   the real variables are, one after the other: inputs, outputs, states, start values of the states. The states are the
   vector of the model's set_state: those of the layers, then the last inputs. The only Boolean variable, 0, says whether
   the run starts cold; else it starts at the start values of the states. */
#include "fmu_model.h"

#include "fmi2_interface.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    OUTPUTS_BEGIN = FMU_INPUTS,
    STATES_BEGIN = OUTPUTS_BEGIN + FMU_OUTPUTS,
    STARTS_BEGIN = STATES_BEGIN + FMU_STATES,
    REALS_END = STARTS_BEGIN + FMU_STATES
};

typedef enum { INSTANTIATED, INITIALISING, RUNNING, TERMINATED } Phase;

/* All that a step changes, and all that a saved state of the FMU has. */
typedef struct {
    unsigned long export_mark; /* of the model: the state of another one is refused */
    Phase phase;
    fmi2Boolean cold;
    fmi2Real time;
    fmi2Real inputs[FMU_INPUTS + 1]; /* one more: C has no arrays without elements */
    fmi2Real starts[FMU_STATES];
    fmu_run run;
} Memory;

typedef struct {
    const fmi2CallbackFunctions *functions;
    char *name;
    Memory memory;
} Instance;

static fmi2Status refuse(const Instance *instance, const char *message)
{
    const fmi2CallbackFunctions *functions = instance->functions;

    if (functions->logger)
        functions->logger(functions->componentEnvironment, instance->name, fmi2Error, "logStatusError", "%s", message);
    return fmi2Error;
}

static fmi2Status refuse_reference(const Instance *instance, fmi2ValueReference reference, const char *what)
{
    char message[120];

    snprintf(message, sizeof message, "the value reference %u %s", reference, what);
    return refuse(instance, message);
}

static int is_among(fmi2ValueReference reference, unsigned first, unsigned end)
{
    return reference >= first && reference < end;
}

/* Start the run from the variables that say how. */
static void begin(Memory *memory)
{
    fmu_real vector[FMU_STATES];
    int i;

    for (i = 0; i < FMU_STATES; i++)
        vector[i] = (fmu_real) memory->starts[i];
    if (memory->cold)
        fmu_init(&memory->run);
    else
        fmu_set_state(&memory->run, vector);
}

static void set_defaults(Memory *memory)
{
    memset(memory, 0, sizeof *memory);
    memory->export_mark = FMU_EXPORT;
    memory->cold = fmi2True;
    memory->phase = INSTANTIATED;
    memcpy(memory->inputs, fmu_input_starts, FMU_INPUTS * sizeof(fmi2Real));
    memcpy(memory->starts, fmu_state_starts, FMU_STATES * sizeof(fmi2Real));
    begin(memory);
}

const char *FMI2_NAME(fmi2GetTypesPlatform)(void)
{
    return fmi2TypesPlatform;
}

const char *FMI2_NAME(fmi2GetVersion)(void)
{
    return "2.0";
}

fmi2Status FMI2_NAME(fmi2SetDebugLogging)(
    fmi2Component c, fmi2Boolean loggingOn, size_t nCategories, const fmi2String categories[])
{
    /* Only errors are logged, and those always. */
    (void) c, (void) loggingOn, (void) nCategories, (void) categories;
    return fmi2OK;
}

fmi2Component FMI2_NAME(fmi2Instantiate)(
    fmi2String instanceName, fmi2Type fmuType, fmi2String fmuGUID, fmi2String fmuResourceLocation,
    const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean loggingOn)
{
    const char *wrong = NULL;
    Instance *instance;
    size_t length;

    (void) fmuResourceLocation, (void) visible, (void) loggingOn;
    if (!functions || !functions->allocateMemory || !functions->freeMemory)
        return NULL;
    if (!instanceName || !*instanceName)
        wrong = "an instance needs a name";
    else if (fmuType != fmi2CoSimulation)
        wrong = "this FMU is for co-simulation only";
    else if (!fmuGUID || strcmp(fmuGUID, FMU_GUID) != 0)
        wrong = "the GUID is not that of this FMU: modelDescription.xml and library are of different exports";
    if (wrong) {
        if (functions->logger)
            functions->logger(
                functions->componentEnvironment, instanceName ? instanceName : "", fmi2Error, "logStatusError", "%s",
                wrong);
        return NULL;
    }
    length = strlen(instanceName) + 1;
    instance = (Instance *) functions->allocateMemory(1, sizeof(Instance));
    if (!instance)
        return NULL;
    instance->functions = functions;
    instance->name = (char *) functions->allocateMemory(length, sizeof(char));
    if (!instance->name) {
        functions->freeMemory(instance);
        return NULL;
    }
    memcpy(instance->name, instanceName, length);
    set_defaults(&instance->memory);
    return instance;
}

void FMI2_NAME(fmi2FreeInstance)(fmi2Component c)
{
    Instance *instance = (Instance *) c;
    fmi2CallbackFreeMemory free_memory;

    if (!instance)
        return;
    free_memory = instance->functions->freeMemory;
    free_memory(instance->name);
    free_memory(instance);
}

fmi2Status FMI2_NAME(fmi2SetupExperiment)(
    fmi2Component c, fmi2Boolean toleranceDefined, fmi2Real tolerance, fmi2Real startTime,
    fmi2Boolean stopTimeDefined, fmi2Real stopTime)
{
    Instance *instance = (Instance *) c;

    (void) toleranceDefined, (void) tolerance, (void) stopTimeDefined, (void) stopTime;
    if (instance->memory.phase != INSTANTIATED)
        return refuse(instance, "the experiment is set up before the initialisation");
    instance->memory.time = startTime;
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2EnterInitializationMode)(fmi2Component c)
{
    Instance *instance = (Instance *) c;

    if (instance->memory.phase != INSTANTIATED)
        return refuse(instance, "the instance has been initialised before; reset it first");
    instance->memory.phase = INITIALISING;
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2ExitInitializationMode)(fmi2Component c)
{
    Instance *instance = (Instance *) c;

    if (instance->memory.phase != INITIALISING)
        return refuse(instance, "the instance is not in its initialisation");
    instance->memory.phase = RUNNING;
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2Terminate)(fmi2Component c)
{
    Instance *instance = (Instance *) c;

    if (instance->memory.phase != RUNNING)
        return refuse(instance, "the instance is not running");
    instance->memory.phase = TERMINATED;
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2Reset)(fmi2Component c)
{
    set_defaults(&((Instance *) c)->memory);
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2GetReal)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2Real value[])
{
    const Instance *instance = (const Instance *) c;
    const Memory *memory = &instance->memory;
    fmu_real y[FMU_OUTPUTS], states[FMU_STATES];
    size_t i;

    fmu_output(&memory->run, y);
    fmu_get_state(&memory->run, states);
    for (i = 0; i < nvr; i++) {
        if (is_among(vr[i], 0, OUTPUTS_BEGIN))
            value[i] = memory->inputs[vr[i]];
        else if (is_among(vr[i], OUTPUTS_BEGIN, STATES_BEGIN))
            value[i] = (fmi2Real) y[vr[i] - OUTPUTS_BEGIN];
        else if (is_among(vr[i], STATES_BEGIN, STARTS_BEGIN))
            value[i] = (fmi2Real) states[vr[i] - STATES_BEGIN];
        else if (is_among(vr[i], STARTS_BEGIN, REALS_END))
            value[i] = memory->starts[vr[i] - STARTS_BEGIN];
        else
            return refuse_reference(instance, vr[i], "is that of no real variable");
    }
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2SetReal)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Real value[])
{
    Instance *instance = (Instance *) c;
    Memory *memory = &instance->memory;
    size_t i;

    for (i = 0; i < nvr; i++) {
        if (!isfinite(value[i]))
            return refuse_reference(instance, vr[i], "was set to what is not a finite number");
        if (is_among(vr[i], 0, OUTPUTS_BEGIN))
            memory->inputs[vr[i]] = value[i];
        else if (!is_among(vr[i], STARTS_BEGIN, REALS_END))
            return refuse_reference(instance, vr[i], "is that of no real variable that can be set");
        else if (memory->phase >= RUNNING)
            return refuse_reference(instance, vr[i], "is that of a start value, which is set before the first step");
        else
            memory->starts[vr[i] - STARTS_BEGIN] = value[i];
    }
    if (memory->phase < RUNNING)
        begin(memory);
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2GetBoolean)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2Boolean value[])
{
    const Instance *instance = (const Instance *) c;
    size_t i;

    for (i = 0; i < nvr; i++) {
        if (vr[i] != 0)
            return refuse_reference(instance, vr[i], "is that of no Boolean variable");
        value[i] = instance->memory.cold;
    }
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2SetBoolean)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Boolean value[])
{
    Instance *instance = (Instance *) c;
    size_t i;

    for (i = 0; i < nvr; i++) {
        if (vr[i] != 0)
            return refuse_reference(instance, vr[i], "is that of no Boolean variable");
        if (instance->memory.phase >= RUNNING)
            return refuse(instance, "whether a run starts cold is set before the first step");
        instance->memory.cold = value[i] != fmi2False;
        begin(&instance->memory);
    }
    return fmi2OK;
}

static fmi2Status refuse_any(fmi2Component c, size_t count, const char *message)
{
    return count ? refuse((const Instance *) c, message) : fmi2OK;
}

fmi2Status FMI2_NAME(fmi2GetInteger)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2Integer value[])
{
    (void) vr, (void) value;
    return refuse_any(c, nvr, "this FMU has no integer variables");
}

fmi2Status FMI2_NAME(fmi2SetInteger)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Integer value[])
{
    (void) vr, (void) value;
    return refuse_any(c, nvr, "this FMU has no integer variables");
}

fmi2Status FMI2_NAME(fmi2GetString)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2String value[])
{
    (void) vr, (void) value;
    return refuse_any(c, nvr, "this FMU has no string variables");
}

fmi2Status FMI2_NAME(fmi2SetString)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2String value[])
{
    (void) vr, (void) value;
    return refuse_any(c, nvr, "this FMU has no string variables");
}

fmi2Status FMI2_NAME(fmi2GetFMUstate)(fmi2Component c, fmi2FMUstate *FMUstate)
{
    Instance *instance = (Instance *) c;

    if (!*FMUstate)
        *FMUstate = instance->functions->allocateMemory(1, sizeof(Memory));
    if (!*FMUstate)
        return refuse(instance, "no memory for a state");
    memcpy(*FMUstate, &instance->memory, sizeof(Memory));
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2SetFMUstate)(fmi2Component c, fmi2FMUstate FMUstate)
{
    Instance *instance = (Instance *) c;

    if (!FMUstate)
        return refuse(instance, "there is no state to set");
    memcpy(&instance->memory, FMUstate, sizeof(Memory));
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2FreeFMUstate)(fmi2Component c, fmi2FMUstate *FMUstate)
{
    if (FMUstate && *FMUstate) {
        ((Instance *) c)->functions->freeMemory(*FMUstate);
        *FMUstate = NULL;
    }
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2SerializedFMUstateSize)(fmi2Component c, fmi2FMUstate FMUstate, size_t *size)
{
    (void) c, (void) FMUstate;
    *size = sizeof(Memory);
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2SerializeFMUstate)(
    fmi2Component c, fmi2FMUstate FMUstate, fmi2Byte serializedState[], size_t size)
{
    if (size < sizeof(Memory))
        return refuse((const Instance *) c, "the memory for a serialised state is too small");
    memcpy(serializedState, FMUstate, sizeof(Memory));
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2DeSerializeFMUstate)(
    fmi2Component c, const fmi2Byte serializedState[], size_t size, fmi2FMUstate *FMUstate)
{
    Instance *instance = (Instance *) c;
    unsigned long mark = 0;

    if (size == sizeof(Memory))
        memcpy(&mark, serializedState, sizeof mark);
    if (mark != FMU_EXPORT)
        return refuse(instance, "this is not a serialised state of this model");
    if (!*FMUstate)
        *FMUstate = instance->functions->allocateMemory(1, sizeof(Memory));
    if (!*FMUstate)
        return refuse(instance, "no memory for a state");
    memcpy(*FMUstate, serializedState, sizeof(Memory));
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2GetDirectionalDerivative)(
    fmi2Component c, const fmi2ValueReference vUnknown_ref[], size_t nUnknown, const fmi2ValueReference vKnown_ref[],
    size_t nKnown, const fmi2Real dvKnown[], fmi2Real dvUnknown[])
{
    (void) vUnknown_ref, (void) nUnknown, (void) vKnown_ref, (void) nKnown, (void) dvKnown, (void) dvUnknown;
    return refuse((const Instance *) c, "this FMU has no directional derivatives");
}

fmi2Status FMI2_NAME(fmi2SetRealInputDerivatives)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Integer order[], const fmi2Real value[])
{
    (void) vr, (void) order, (void) value;
    return refuse_any(c, nvr, "this FMU holds its inputs and does not take their derivatives");
}

fmi2Status FMI2_NAME(fmi2GetRealOutputDerivatives)(
    fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Integer order[], fmi2Real value[])
{
    (void) vr, (void) order, (void) value;
    return refuse_any(c, nvr, "this FMU has no derivatives of its outputs");
}

/* Whether all numbers of a run are finite. */
static int is_finite(const fmu_run *run)
{
    fmu_real y[FMU_OUTPUTS], states[FMU_STATES];
    int i;

    fmu_output(run, y);
    fmu_get_state(run, states);
    for (i = 0; i < FMU_OUTPUTS; i++)
        if (!isfinite(y[i]))
            return 0;
    for (i = 0; i < FMU_STATES; i++)
        if (!isfinite(states[i]))
            return 0;
    return 1;
}

fmi2Status FMI2_NAME(fmi2DoStep)(
    fmi2Component c, fmi2Real currentCommunicationPoint, fmi2Real communicationStepSize,
    fmi2Boolean noSetFMUStatePriorToCurrentPoint)
{
    Instance *instance = (Instance *) c;
    Memory *memory = &instance->memory;
    const fmi2Real samples = communicationStepSize / FMU_DT, whole = floor(samples + 0.5);
    fmu_real u[FMU_INPUTS + 1], y[FMU_OUTPUTS];
    char message[160];
    fmi2Real step;
    int i;

    (void) noSetFMUStatePriorToCurrentPoint;
    if (memory->phase != RUNNING)
        return refuse(instance, "a step needs an instance that is initialised and not terminated");
    /* An error and not fmi2Discard: after that, tools try another step, and results would be late by part of a sample.
       The tolerance is for the rounding of times. */
    if (!(whole >= 1.0 && fabs(samples - whole) <= 1e-4)) {
        snprintf(
            message, sizeof message, "the step size must be a multiple of the sampling interval %.10g, received %.10g",
            (double) FMU_DT, communicationStepSize);
        return refuse(instance, message);
    }
    for (i = 0; i < FMU_INPUTS; i++)
        u[i] = (fmu_real) memory->inputs[i];
    for (step = 0.0; step < whole; step += 1.0)
        fmu_step(&memory->run, u, y);
    if (!is_finite(&memory->run)) {
        memory->phase = TERMINATED;
        return refuse(instance, "the run diverged; check the units of the inputs");
    }
    memory->time = currentCommunicationPoint + communicationStepSize;
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2CancelStep)(fmi2Component c)
{
    return refuse((const Instance *) c, "a step is done when its call returns, and cannot be cancelled");
}

fmi2Status FMI2_NAME(fmi2GetStatus)(fmi2Component c, const fmi2StatusKind s, fmi2Status *value)
{
    (void) c, (void) s, (void) value;
    return fmi2Discard;
}

fmi2Status FMI2_NAME(fmi2GetRealStatus)(fmi2Component c, const fmi2StatusKind s, fmi2Real *value)
{
    if (s != fmi2LastSuccessfulTime)
        return fmi2Discard;
    *value = ((const Instance *) c)->memory.time;
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2GetIntegerStatus)(fmi2Component c, const fmi2StatusKind s, fmi2Integer *value)
{
    (void) c, (void) s, (void) value;
    return fmi2Discard;
}

fmi2Status FMI2_NAME(fmi2GetBooleanStatus)(fmi2Component c, const fmi2StatusKind s, fmi2Boolean *value)
{
    if (s != fmi2Terminated)
        return fmi2Discard;
    *value = ((const Instance *) c)->memory.phase == TERMINATED;
    return fmi2OK;
}

fmi2Status FMI2_NAME(fmi2GetStringStatus)(fmi2Component c, const fmi2StatusKind s, fmi2String *value)
{
    (void) c, (void) s, (void) value;
    return fmi2Discard;
}
